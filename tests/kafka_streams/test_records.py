"""Replayed by snapstore's rules, a changelog gives the very bytes of a real application's store."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition
from snapstore.model.records import (
    FAMILIES,
    KeySchema,
    StoreFormat,
    format_of,
    segment_timestamp_ms,
    value_converter,
)
from snapstore.model.versioned import VersionedOptions, VersionedReplay
from snapstore.testing.changelog_contract import NOW, read_all
from tests.support.broker import Broker
from tests.support.rocksdb import raw_contents
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STORES = ("plain", "table", "window", "session", "join", "versioned")

Contents = Mapping[bytes, bytes]


def read_changelog(broker: Broker, app: StreamsApp, store: str) -> list[ChangelogRecord]:
    changelog = KafkaChangelog(broker.bootstrap, timeout_seconds=60)
    partition = ChangelogPartition(app.changelog(store), 0)
    state = changelog.inspect(partition, now=NOW)
    records, _ = read_all(changelog, partition, state.log_start, state.log_end)
    changelog.close()
    return records


def fold(records: Iterable[ChangelogRecord], form: StoreFormat) -> Contents:
    convert = value_converter(form)
    contents: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        value = convert(record)
        if value is None:
            contents.pop(record.key, None)
        else:
            contents[record.key] = value
    return contents


def only(contents: dict[str, dict[bytes, bytes]], form: StoreFormat) -> Contents:
    """The entries of the family of that format; every other family of the store is empty."""
    assert format_of(frozenset(contents)) == form
    others = [f for f in contents if f not in (FAMILIES[form], "offsets") and contents[f]]
    assert others == []
    return contents[FAMILIES[form]]


def replay_versioned(
    records: Iterable[ChangelogRecord], options: VersionedOptions, onto: dict[bytes, bytes]
) -> None:
    replay = VersionedReplay(options, onto.get, onto.items())
    for number, record in enumerate(records):
        replay.apply(record)
        if number % 97 == 0:
            write(replay, onto)
    write(replay, onto)


def write(replay: VersionedReplay, onto: dict[bytes, bytes]) -> None:
    writes = replay.take()
    for prefix in writes.dropped_prefixes:
        for key in [key for key in onto if key.startswith(prefix)]:
            del onto[key]
    for key, value in writes.entries.items():
        if value is None:
            onto.pop(key, None)
        else:
            onto[key] = value


FORMATS: dict[str, tuple[str, dict[str, str], dict[str, StoreFormat]]] = {
    "4.4.0": (
        "4.4.0",
        {},
        {
            "plain": "plain",
            "table": "timestamped",
            "window": "timestamped",
            "session": "plain",
            "join": "plain",
        },
    ),
    "4.4.0 with headers": (
        "4.4.0",
        {"dsl.store.format": "HEADERS"},
        {
            "plain": "plain",
            "table": "headers",
            "window": "headers",
            "session": "session-headers",
            "join": "headers",
        },
    ),
    "4.2.1": (
        "4.2.1",
        {},
        {
            "plain": "plain",
            "table": "timestamped",
            "window": "timestamped",
            "session": "plain",
            "join": "plain",
        },
    ),
}
SEGMENTED: dict[str, tuple[KeySchema, int]] = {
    "window": ("window", DAY_MS),
    "session": ("session", DAY_MS),
    "join": ("window", 60_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("row", FORMATS.values(), ids=FORMATS.keys())
def test_every_store_holds_what_its_changelog_says(
    lab: StreamsLab, tmp_path: Path, row: tuple[str, dict[str, str], dict[str, StoreFormat]]
) -> None:
    version, config, formats = row
    topic = lab.new_topic()
    lab.fill(
        topic,
        InputShape(
            records=6000,
            keys=40,
            partitions=1,
            delete_pct=10,
            start_ts=hours_ago(29),
            step_ms=16_000,
            jitter_ms=3 * HOUR_MS,
        ),
    )
    app = lab.app(topic, version=version, stores=STORES, config=config)
    app.run("caughtUp")
    task = app.directory / "0_0"

    for store, form in formats.items():
        if store in SEGMENTED:
            continue
        contents = raw_contents(task / "rocksdb" / store, tmp_path / store)
        assert only(contents, form) == fold(read_changelog(lab.broker, app, store), form)

    for store, (schema, interval_ms) in SEGMENTED.items():
        for root in sorted(path for path in task.glob(f"{store}*") if path.is_dir()):
            records = read_changelog(lab.broker, app, root.name)
            folded = fold(records, formats[store])
            held = segments(root, formats[store], schema, interval_ms, tmp_path)
            oldest = min(held)
            live = {k: v for k, v in folded.items() if segment_timestamp_ms(schema, k) >= oldest}
            assert {k: v for contents in held.values() for k, v in contents.items()} == live
            assert live

    versions = raw_contents(task / "rocksdb" / "versioned", tmp_path / "versioned")["default"]
    rebuilt: dict[bytes, bytes] = {}
    replay_versioned(
        read_changelog(lab.broker, app, "versioned"),
        VersionedOptions.with_default_interval(DAY_MS),
        rebuilt,
    )
    assert len(versions) > 500
    assert rebuilt == versions


def segments(
    root: Path, form: StoreFormat, schema: KeySchema, interval_ms: int, tmp_path: Path
) -> dict[int, Contents]:
    """The contents of each segment by its start; every key lies where its time belongs."""
    found: dict[int, Contents] = {}
    for folder in root.iterdir():
        start = int(folder.name.rpartition(".")[2])
        contents = only(raw_contents(folder, tmp_path / folder.name), form)
        times = [segment_timestamp_ms(schema, key) for key in contents]
        assert all(start <= time < start + interval_ms for time in times)
        found[start] = contents
    return found

"""Replayed by snapstore, a restored store is what the application itself would have made of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from snapstore.model.records import KeySchema, segment_timestamp_ms
from snapstore.operations.replay_plan import ReplayGoal
from tests.support.replay_lab import ReplayLab, Rows
from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab

HOUR_MS = 3_600_000
RETENTION_MS = 48 * HOUR_MS
SCHEMAS: Mapping[str, KeySchema] = {"window": "window", "session": "session"}
STORES = ("plain", "table", "versioned", "window", "session", "join")
FORMATS = {
    "4.4.0": ("4.4.0", {}),
    "4.4.0 with headers": ("4.4.0", {"dsl.store.format": "HEADERS"}),
    "4.2.1": ("4.2.1", {}),
}
FIRST = InputShape(
    records=4000,
    keys=60,
    partitions=1,
    delete_pct=10,
    start_ts=hours_ago(76),
    step_ms=54_000,
    jitter_ms=3 * HOUR_MS,
)
"""Ends 16 hours ago: a changelog that ends before the retention of its topic the broker empties."""
SECOND_STEP_MS = 14_400


def restored_counts(run: Run) -> Mapping[str, int]:
    return {store: count for (store, _), count in run.restored().items()}


def live_rows(stores: Rows) -> Rows:
    """Leave out what is past the retention: 4.4 skips it in a rebuild, by the time of records."""
    return {key: _live(key[1], rows) for key, rows in stores.items()}


def _live(store: str, rows: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    if store not in SCHEMAS:
        return rows
    times = {key: segment_timestamp_ms(SCHEMAS[store], key) for key in rows}
    oldest = max(times.values()) - RETENTION_MS
    return {key: value for key, value in rows.items() if times[key] >= oldest}


def elsewhere(app: StreamsApp, state_dir: Path) -> StreamsApp:
    """The same application on another state directory."""
    return replace(app, state_dir=state_dir, work_dir=state_dir.with_name(f"{state_dir.name}-runs"))


@pytest.mark.slow
@pytest.mark.parametrize("row", FORMATS.values(), ids=FORMATS.keys())
def test_restore_and_replay_give_what_a_rebuild_gives_and_the_application_has_nothing_to_do(
    lab: StreamsLab, tmp_path: Path, row: tuple[str, dict[str, str]]
) -> None:
    version, config = row
    topic = lab.new_topic()
    generated = lab.fill(topic, FIRST)
    app = lab.app(topic, version=version, stores=STORES, config=config)
    app.run("caughtUp")
    work = ReplayLab(tmp_path, app)
    with work.open() as store:
        report = store.snapshot(listener=work.heard)
        assert not report.failed
        assert report.notes == ()
        assert all(
            position.fence is not None
            for outcome in report.outcomes
            if outcome.snapshot is not None
            for position in outcome.snapshot.description.positions
        )
        more = replace(FIRST, seed=2, start_ts=generated.next_ts, step_ms=SECOND_STEP_MS)
        lab.fill(topic, more)
        app.run("caughtUp")
        replayed = store.restore(
            target=tmp_path / "replayed", replay=ReplayGoal(), listener=work.heard
        )
    rebuilt = elsewhere(app, tmp_path / "rebuilt").run("running")
    after = elsewhere(app, tmp_path / "replayed").run("running")

    ours, theirs = work.rows(tmp_path / "replayed"), work.rows(tmp_path / "rebuilt")
    assert {store for _, store in ours} > {*STORES} - {"join"}
    assert live_rows(ours) == live_rows(theirs)
    lived = work.rows(app.state_dir)
    # Kafka Streams forgets at a restart which old versions it was to remove.
    assert {key: rows for key, rows in ours.items() if key[1] != "versioned"} == {
        key: rows for key, rows in lived.items() if key[1] != "versioned"
    }
    assert all(each.records_to_replay == 0 for each in replayed.stores)
    assert sum(part.records for each in replayed.stores for part in each.replayed) > 3000
    assert set(restored_counts(after).values()) == {0}, restored_counts(after)
    # Kafka Streams keeps the time of segments in memory, so queries of the others see less.
    for name in ("plain", "table"):
        assert after.dump()[name] == rebuilt.dump()[name]

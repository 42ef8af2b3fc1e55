"""Many captures of a running application, each compared with the changelogs it came from.

Flushes and compactions go on all the time, daily segments come and expire; the input comes in
order first, and then with records that are late by up to 20 hours.
"""

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rocksdict import Options, Rdict

from tests.support.broker import Broker
from tests.support.changelog_check import HOUR_MS, KINDS, Capture, Truth, differences
from tests.support.command import Command
from tests.support.snapshot_answers import Place, Taken
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.streams_raw import Stores, data_of, noted_offsets, read_stores
from tests.support.topic import TopicRecord
from tests.support.topic_history import History

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1800)]

LONG = [pytest.mark.soak, pytest.mark.timeout(3600)]
STORES = ("plain", "table", "versioned", "window", "session", "count")
SEGMENTED = {"window", "session"}
PLACES = {(f"0_{number}", store) for number in (0, 1) for store in STORES[:-1]} | {
    (f"1_{number}", "count") for number in (0, 1)
}
KEYS = 3000
SHAPE = InputShape(
    records=24_000, keys=KEYS, start_ts=hours_ago(24 * 40), step_ms=7500, value_size=40
)
IN_ORDER_MS, LATE_MS = 9000, 3600  # of event time for each record
CONFIG = {
    "windowstore.changelog.additional.retention.ms": str(60 * 24 * HOUR_MS),
    # The history is compared as a whole; by the records' own times it is long overdue.
    "topic.min.compaction.lag.ms": str(90 * 24 * HOUR_MS),
}


@dataclass(frozen=True, kw_only=True)
class Captured:
    """One snapshot of one store: its documents, and how much was in its changelog afterwards."""

    place: Place
    snapshot: Any
    in_order: bool
    history_length: int

    @property
    def comparable(self) -> bool:
        """A version that comes late changes the rows of others: only those in order are told."""
        return self.in_order or self.place[1] != "versioned"


@dataclass(frozen=True, kw_only=True)
class Series:
    """All captures of one application, the histories of its changelogs, and where it all lies."""

    count: int
    app: StreamsApp
    snapstore: Command
    runs: list[Taken]
    captured: list[Captured]
    history: History
    folder: Path

    def changelog(self, place: Place) -> tuple[str, int]:
        return self.app.changelog(place[1]), int(place[0][-1])

    def records(self, captured: Captured) -> list[TopicRecord]:
        return self.history.records[self.changelog(captured.place)][: captured.history_length]

    @contextmanager
    def restored(self, captured: list[Captured]) -> Iterator[Path]:
        """Restore captures of different places somewhere else; yields their application there."""
        target = self.folder / "scratch"
        ids = [one.snapshot["id"] for one in captured]
        self.snapstore("restore", *ids, "--target", target, "--allow-unchecked-changelog")
        try:
            yield target / self.app.application
        finally:
            shutil.rmtree(target)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("4.4.0", 20), id="4.4.0"),
        pytest.param(("4.2.1", 10), id="4.2.1"),
        pytest.param(("4.4.0", 100), id="4.4.0-long", marks=LONG),
        pytest.param(("4.2.1", 100), id="4.2.1-long", marks=LONG),
    ],
)
def series(
    broker: Broker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Series]:
    folder = tmp_path_factory.mktemp("series")
    lab = StreamsLab(broker, folder / "lab")
    history = History(broker.bootstrap)
    try:
        yield _take_all(lab, history, folder, *request.param)
    finally:
        history.close()
        lab.close()


def _take_all(lab: StreamsLab, history: History, folder: Path, version: str, count: int) -> Series:
    topic = lab.new_topic()
    app = lab.app(topic, version=version, stores=STORES, keys=KEYS, memtable=65536, config=CONFIG)
    snapstore = Command(folder / "home", str(folder / "repository"))
    snapstore("init")
    filled = lab.fill(topic, SHAPE)
    run = app.start()
    run.wait_ready()
    series = Series(
        count=count,
        app=app,
        snapstore=snapstore,
        runs=[],
        captured=[],
        history=history,
        folder=folder,
    )
    history.follow(map(series.changelog, PLACES))
    shape = dataclasses.replace(SHAPE, records=1_000_000, rate=800)
    in_order = lab.load(
        topic, dataclasses.replace(shape, start_ts=filled.next_ts, step_ms=IN_ORDER_MS, seed=2)
    )
    _capture(series, count - count // 2, in_order=True)
    late = dataclasses.replace(
        shape, start_ts=in_order.stop().next_ts, step_ms=LATE_MS, jitter_ms=20 * HOUR_MS, seed=3
    )
    load = lab.load(topic, late)
    _capture(series, count // 2, in_order=False)
    load.stop()
    run.crash()
    return series


def _capture(series: Series, count: int, *, in_order: bool) -> None:
    for _ in range(count):
        answer = series.snapstore("snapshot", "--state-dir", series.app.state_dir, expect=(0, 3, 5))
        wait_until_logged(series.app)
        lengths = series.history.read()
        series.runs.append(Taken.of(answer.document))
        for item in answer.document["items"]:
            if item["snapshot"] is None:
                continue
            place = (item["task"], item["store"])
            series.captured.append(
                Captured(
                    place=place,
                    snapshot=item["snapshot"],
                    in_order=in_order,
                    history_length=lengths[series.changelog(place)],
                )
            )


def test_every_store_was_taken_or_refused_for_an_offset_that_is_not_known(series: Series) -> None:
    assert len(series.runs) == series.count
    for run in series.runs:
        assert run.stored.keys() | run.refused.keys() <= PLACES
        assert set(run.refused.values()) <= {"unknown_offset", "exactly_once_hot"}
    for in_order in (True, False):
        taken = {one.place for one in series.captured if one.in_order is in_order}
        assert taken == PLACES
    before: set[Place] = set()
    for run in series.runs:
        # Once noted, an offset stays, but for that of a segment that has just begun.
        again = {store for _, store in before & run.refused.keys()}
        assert again <= (SEGMENTED if series.app.version == "4.4.0" else set())
        before |= run.stored.keys()


def test_segments_came_and_expired_meanwhile(series: Series) -> None:
    for place in PLACES:
        if place[1] in SEGMENTED:
            seen = [set(one.snapshot["databases"]) for one in series.captured if one.place == place]
            assert seen[0] - seen[-1], "none expired"
            assert seen[-1] - seen[0], "none came"
            assert max(len(databases) for databases in seen) >= 3


def test_every_capture_opens_and_scans_clean(series: Series) -> None:
    answer = series.snapstore("verify", "--open")
    assert answer.document["damage"] == []
    assert answer.document["opened_stores"] == len(series.captured)


def test_a_capture_and_the_records_after_it_are_what_the_changelog_says(series: Series) -> None:
    compared = 0
    truths = {
        place: Truth(KINDS[place[1]], series.history.records[series.changelog(place)])
        for place in PLACES
    }
    for run in dict.fromkeys(one.snapshot["run"] for one in series.captured):
        together = [one for one in series.captured if one.snapshot["run"] == run]
        with series.restored(together) as application:
            stores = read_stores(application, series.folder)
            assert stores.keys() == {one.place for one in together}
            for captured in together:
                if not captured.comparable:
                    continue
                capture = _capture_of(series, captured, stores, application)
                wrong = differences(
                    KINDS[captured.place[1]],
                    capture,
                    series.records(captured),
                    truths[captured.place].at(captured.history_length),
                )
                assert not wrong, (captured.place, len(wrong), wrong[:5])
                compared += 1
    assert compared == sum(one.comparable for one in series.captured)


def _capture_of(series: Series, captured: Captured, stores: Stores, application: Path) -> Capture:
    """The rows of a restored store; what its files note must be what the snapshot says."""
    databases = stores[captured.place]
    applied = captured.snapshot["applied_offset"]
    for noted in noted_offsets(application, databases, captured.place[0]):
        assert noted[series.changelog(captured.place)] == applied
    return Capture(rows=data_of(databases), applied_offset=applied)


@pytest.mark.parametrize("store", STORES)
def test_an_offset_that_is_too_new_would_be_seen(series: Series, store: str) -> None:
    captured = max(_comparable(series, store), key=_tail_length)
    history = series.records(captured)
    with series.restored([captured]) as application:
        stores = read_stores(application, series.folder)
        capture = _capture_of(series, captured, stores, application)
    assert not differences(KINDS[store], capture, history)
    assert differences(KINDS[store], Capture(capture.rows, len(history) - 1), history)


@pytest.mark.parametrize("store", sorted({*STORES} - {"count"}))  # written anew by any tail
def test_a_table_that_is_missing_would_be_seen(series: Series, store: str) -> None:
    for captured in sorted(_comparable(series, store), key=_tail_length):
        for database in captured.snapshot["databases"]:
            if _a_lost_table_is_seen(series, captured, database):
                return
    pytest.fail("whatever any table held had expired, or came again with the tail")


def _a_lost_table_is_seen(series: Series, captured: Captured, database: str) -> bool:
    """Drop each table, from the largest on, until the loss of one is bound to be seen."""
    kind, history = KINDS[captured.place[1]], series.records(captured)
    tail = {kind.entry(one)[0] for one in history[captured.snapshot["applied_offset"] + 1 :]}
    wanted = Truth(kind, history).at(len(history))
    rank = tables = 0
    while rank <= tables:
        with series.restored([captured]) as application:
            stores = read_stores(application, series.folder)
            whole = _capture_of(series, captured, stores, application)
            tables = _drop_a_table(application / captured.place[0] / database, rank)
            stores = read_stores(application, series.folder)
        rest = Capture(data_of(stores[captured.place]), whole.applied_offset)
        lost = kind.content(whole.rows).keys() - kind.content(rest.rows).keys()
        if (lost & wanted.keys()) - tail:
            assert differences(kind, rest, history, wanted)
            return True
        rank += 1
    return False


def _drop_a_table(database: Path, rank: int) -> int:
    """Drop one by its rank in size, 0 the largest; RocksDB makes a MANIFEST of those returned."""
    tables = sorted(database.glob("*.sst"), key=lambda table: table.stat().st_size, reverse=True)
    tables.pop(rank).unlink()
    Rdict.repair(str(database), Options(raw_mode=True))
    return len(tables)


# From 4.3 on each segment has an offset of its own.
@pytest.mark.parametrize("series", [("4.4.0", 20)], indirect=True, ids=["4.4.0"])
@pytest.mark.parametrize("store", sorted(SEGMENTED))
def test_the_offset_of_the_newest_segment_alone_would_be_seen(series: Series, store: str) -> None:
    """What Kafka Streams 4.3.1 and 4.4.0 take after a crash, which loses rows of older segments."""
    kind = KINDS[store]
    for captured in sorted(_comparable(series, store), key=_tail_length, reverse=True):
        history = series.records(captured)
        with series.restored([captured]) as application:
            stores = read_stores(application, series.folder)
        rows = data_of(stores[captured.place])
        newest = max(one.offset for one in history if kind.entry(one)[0] in rows)
        if differences(kind, Capture(rows, newest), history):
            break
    else:
        pytest.fail("no capture had segments that were behind one another")


def _comparable(series: Series, store: str) -> list[Captured]:
    return [one for one in series.captured if one.place[1] == store and one.comparable]


def _tail_length(captured: Captured) -> int:
    return captured.history_length - 1 - int(captured.snapshot["applied_offset"])

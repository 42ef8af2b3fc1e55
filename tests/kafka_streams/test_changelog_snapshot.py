"""Snapshots made from the changelog, of applications that run and of stores without files."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from snapstore.config.schema import StoreConfig
from snapstore.errors import RefusedError
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.snapshot_report import SnapshotReport, StoreOutcome
from tests.kafka_streams.test_replay import elsewhere, live_rows, restored_counts
from tests.support.replay_lab import ReplayLab
from tests.support.rocksdb import raw_contents
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_for_records

STORES = ("plain", "table", "versioned", "mem", "window", "session")
LIVELY = InputShape(
    records=60_000,
    keys=500,
    partitions=1,
    delete_pct=10,
    start_ts=hours_ago(45),
    step_ms=3_600,
    jitter_ms=3_600_000,
    rate=1500,
)


def by_store(report: SnapshotReport) -> Mapping[str, StoreOutcome]:
    assert not report.failed, [outcome.error for outcome in report.failed]
    return {outcome.store.store: outcome for outcome in report.outcomes}


def sources(report: SnapshotReport) -> Mapping[str, str]:
    return {
        name: outcome.snapshot.description.source
        for name, outcome in by_store(report).items()
        if outcome.snapshot is not None
    }


@pytest.mark.slow
def test_a_running_application_is_rolled_forward_where_its_disk_does_not_say_enough(
    lab: StreamsLab, tmp_path: Path
) -> None:
    topic = lab.new_topic()
    load = lab.load(topic, LIVELY)
    app = lab.app(topic, stores=STORES, memtable=65536)
    run = app.start("forever")
    run.wait_ready()
    work = ReplayLab(tmp_path, app, stores={"mem": StoreConfig(in_memory=True)}, max_lag_records=0)
    with work.open() as store:
        time.sleep(4)
        wait_for_records(app, "plain", 5000, partitions=1)
        first = store.snapshot(listener=work.heard)
        time.sleep(3)
        second = store.snapshot(listener=work.heard)
    load.stop()
    run.close()
    app.run("caughtUp")

    assert set(sources(first)) == set(sources(second)) == set(STORES)
    for name in STORES:
        assert sources(first)[name] == "changelog", by_store(first)[name].remarks
        assert "the work folder" in by_store(second)[name].remarks[0]
    assert "the beginning of the log" in by_store(first)["versioned"].remarks[0]
    assert "the application's disk" in by_store(first)["plain"].remarks[0]
    with work.open() as store:
        with pytest.raises(RefusedError, match="memory"):
            store.restore([f"{app.application}/mem:0"], target=tmp_path / "nowhere")
        on_disk = [f"{app.application}/{name}:0" for name in STORES if name != "mem"]
        store.restore(on_disk, target=tmp_path / "replayed", replay=ReplayGoal())
    compare_with_rebuild(work, app, tmp_path)


def compare_with_rebuild(work: ReplayLab, app: StreamsApp, tmp_path: Path) -> None:
    on_disk = tuple(name for name in app.stores if name != "mem")
    quiet = replace(app, stores=on_disk)
    elsewhere(quiet, tmp_path / "rebuilt").run("running")
    after = elsewhere(quiet, tmp_path / "replayed").run("running")
    assert live_rows(work.rows(tmp_path / "replayed")) == live_rows(work.rows(tmp_path / "rebuilt"))
    assert set(restored_counts(after).values()) == {0}, restored_counts(after)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_no_disk_is_needed_for_a_snapshot_of_an_exactly_once_application(
    lab: StreamsLab, tmp_path: Path, version: str
) -> None:
    topic = lab.new_topic()
    shape = replace(LIVELY, records=5000, rate=0, start_ts=hours_ago(30), step_ms=10_000)
    generated = lab.fill(topic, shape)
    app = lab.app(topic, version=version, stores=STORES, guarantee="exactly_once_v2")
    app.run("caughtUp")
    stores = {"mem": StoreConfig(in_memory=True)}
    work = ReplayLab(tmp_path, app, guarantee="exactly_once_v2", stores=stores)
    with work.open() as store:
        closed = store.snapshot(listener=work.heard)
        assert {name: at for name, at in sources(closed).items() if name != "mem"} == {
            name: "closed" for name in STORES if name != "mem"
        }
        lab.fill(topic, replace(shape, seed=2, start_ts=generated.next_ts))
        app.run("caughtUp")
        nowhere = tmp_path / "nowhere"
        nowhere.mkdir()
        made = store.snapshot(nowhere, capture="changelog", listener=work.heard)
        assert set(sources(made).values()) == {"changelog"}
        for name in set(STORES) - {"mem"}:
            assert "snapshot" in by_store(made)[name].remarks[0]
        on_disk = [f"{app.application}/{name}:0" for name in STORES if name != "mem"]
        store.restore(on_disk, target=tmp_path / "replayed")
    compare_with_rebuild(work, app, tmp_path)

    (mem,) = (tmp_path / "cache").glob("*/work/*/0_0/mem/task/rocksdb/mem")
    plain = tmp_path / "rebuilt" / app.application / "0_0" / "rocksdb" / "plain"
    assert (
        raw_contents(mem, work.scratch())["default"]
        == raw_contents(plain, work.scratch())["default"]
    )

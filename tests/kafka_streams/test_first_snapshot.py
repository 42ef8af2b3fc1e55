"""The first snapshot of a running application comes back, whatever compaction takes away then.

The stores on the disk are behind when they are saved, and have never been looked at before. The
deletions in between are then really compacted away; the application is killed, its disk is lost.
"""

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.client import Snapstore
from snapstore.config.schema import StoreConfig
from snapstore.model.identity import ChangelogPartition
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.testing.changelog_contract import Written
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker
from tests.support.replay_lab import ReplayLab
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.topic import fold, read_partition

pytestmark = pytest.mark.kafka

EAGER = {"delete.retention.ms": "1", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.001"}
SHAPE = InputShape(
    records=12_000, keys=2500, partitions=1, delete_pct=30, start_ts=hours_ago(30), step_ms=6000
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """How the application is set up, and how much it is given."""

    version: str = "4.4.0"
    stores: tuple[str, ...] = ("plain", "table", "session")
    memtable: int | None = 65536
    transactional: bool = False
    shape: InputShape = SHAPE
    deletions: int = 20
    rules: Mapping[str, StoreConfig] = field(default_factory=dict)

    def app(self, lab: StreamsLab, topic: str) -> StreamsApp:
        config = {"enable.transactional.statestores": "true"} if self.transactional else {}
        return lab.app(
            topic,
            version=self.version,
            stores=self.stores,
            memtable=self.memtable,
            guarantee="exactly_once_v2" if self.transactional else "at_least_once",
            config=config,
        )


def deletions(store: Snapstore, report: SnapshotReport) -> Mapping[ChangelogPartition, set[int]]:
    """The offsets of the tombstones that the snapshots note."""
    found: dict[ChangelogPartition, set[int]] = {}
    for outcome in report.outcomes:
        assert outcome.snapshot is not None, outcome
        for noted in store.repository.manifests.load(outcome.snapshot.id).deletions:
            found[noted.changelog] = {each.offset for each in noted.deletions}
    return found


def compact_away(broker: Broker, noted: Mapping[ChangelogPartition, set[int]]) -> None:
    """Let the broker drop those tombstones; what stays of each log says the same.

    Segments are closed by records that come again with the present time.
    """
    log = BrokerLogs(broker)
    log.configure("BROKER", "1", {"log.cleaner.backoff.ms": "200"})
    try:
        for changelog in noted:
            log.configure("TOPIC", changelog.topic, EAGER)
        deadline = time.monotonic() + 240
        left = dict(noted)
        while left:
            assert time.monotonic() < deadline, f"not compacted away: {left}"
            for changelog in left:
                repeat(broker, log, changelog)
            time.sleep(0.5)
            left = {
                changelog: offsets
                for changelog, offsets in left.items()
                if offsets & present(broker, changelog)
            }
        for changelog in noted:
            log.configure("TOPIC", changelog.topic, dict.fromkeys(EAGER))
    finally:
        log.configure("BROKER", "1", {"log.cleaner.backoff.ms": None})


def present(broker: Broker, changelog: ChangelogPartition) -> set[int]:
    records = read_partition(broker.bootstrap, changelog.topic, changelog.partition)
    return {record.offset for record in records}


def repeat(broker: Broker, log: BrokerLogs, changelog: ChangelogPartition) -> None:
    records = read_partition(broker.bootstrap, changelog.topic, changelog.partition)
    newest = max(fold(records).values(), key=lambda record: record.offset)
    assert newest.key is not None
    now_ms = int(time.time() * 1000)
    log.append(changelog, [Written(newest.key, newest.value, now_ms, newest.headers)])


def elsewhere(app: StreamsApp, state_dir: Path) -> StreamsApp:
    """The same application on another state directory."""
    runs = state_dir.with_name(f"{state_dir.name}-runs")
    return dataclasses.replace(app, state_dir=state_dir, work_dir=runs, runs=[])


def check(lab: StreamsLab, tmp_path: Path, case: Case) -> SnapshotReport:
    topic = lab.new_topic()
    generated = lab.fill(topic, replace(case.shape, records=case.shape.records * 2 // 3))
    app = case.app(lab, topic)
    run = app.start("forever")
    run.wait_ready()
    lab.fill(
        topic,
        replace(case.shape, records=case.shape.records // 3, seed=2, start_ts=generated.next_ts),
    )
    wait_until_logged(app)
    work = ReplayLab(
        tmp_path,
        app,
        guarantee="exactly_once_v2" if case.transactional else "auto",
        stores=case.rules,
    )
    with work.open() as store:
        report = store.snapshot()
        assert not report.failed, [
            (each.error, each.error and each.error.facts) for each in report.failed
        ]
        assert not report.unrestorable, [each.unrestorable for each in report.outcomes]
        assert {each.standing for each in store.status().stores} == {"usable"}
        noted = deletions(store, report)
        run.crash()
        assert sum(map(len, noted.values())) > case.deletions
        compact_away(lab.broker, noted)
        assert {each.standing for each in store.status().stores} == {"usable"}
        assert {each.outcome for each in store.drill().stores} <= {"equal", "partly", "skipped"}
        for name, goal in (("restored", None), ("replayed", ReplayGoal())):
            store.restore(target=tmp_path / name, application=app.application, replay=goal)
    elsewhere(app, tmp_path / "rebuilt").run("running")
    right = work.rows(tmp_path / "rebuilt")
    for name in ("restored", "replayed"):
        elsewhere(app, tmp_path / name).run("running")
        found = work.rows(tmp_path / name)
        for place, rows in right.items():
            assert found[place] == rows, (name, place)
    return report


def test_h01_the_first_snapshot_of_a_running_application_comes_back(
    lab: StreamsLab, tmp_path: Path
) -> None:
    """The promise, once with everything real. About half a minute: four starts of a JVM."""
    report = check(lab, tmp_path, Case(stores=("plain", "session")))
    taken = {each.store.store: each for each in report.outcomes}
    assert taken["plain"].source == "running"


RULES = {
    name: StoreConfig(keys=name, retention=timedelta(hours=48)) for name in ("window", "session")
}
"""Nothing shows how a store is cut into segments before the first of them is flushed."""

CASES = {
    "4.3.1": Case(version="4.3.1"),
    "4.2.1": Case(version="4.2.1", shape=replace(SHAPE, records=60_000)),
    "4.4.0, more stores": Case(
        stores=("plain", "table", "window", "session", "count"), rules=RULES
    ),
    "4.4.0, nothing ever flushed": Case(memtable=None, deletions=-1, rules=RULES),
    "4.4.0, transactional": Case(transactional=True, deletions=-1),
    "4.4.0, versioned": Case(stores=("plain", "versioned"), deletions=-1),
}


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_h01_the_first_snapshot_comes_back_on_every_version_and_of_every_store(
    lab: StreamsLab, tmp_path: Path, case: Case
) -> None:
    check(lab, tmp_path, case)

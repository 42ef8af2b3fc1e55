"""Snapshots made from a real changelog: where they begin, what is kept, and how one is chosen."""

import random
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import (
    ConfigError,
    ExactlyOnceHotError,
    NotReplayableError,
    UnknownOffsetError,
)
from snapstore.operations.capture_choice import CaptureMode
from snapstore.operations.snapshot_report import StoreOutcome
from snapstore.testing.changelog_contract import Written, numbered
from tests.support.broker import Broker
from tests.support.crash import kill_at
from tests.support.logged_store import TASK, LoggedStore
from tests.support.state_dirs import holding_locks, make_database
from tests.support.streams_store import APPLICATION, Pairs, make_key_value


@pytest.fixture
def logged(broker: Broker, tmp_path: Path) -> LoggedStore:
    return LoggedStore(broker, tmp_path)


def take(
    logged: LoggedStore, capture: CaptureMode | None = "changelog", *, disk: bool = False
) -> StoreOutcome:
    with logged.open() as store:
        place = logged.state_dir if disk else None
        report = store.snapshot(place, stores=[logged.name], capture=capture)
    (outcome,) = report.outcomes
    return outcome


def check_restored(logged: LoggedStore) -> None:
    """What is restored now is the log to its end, and nothing is left to replay."""
    with logged.open() as store:
        report = store.restore(target=logged.target, replace=True)
    (restored,) = report.stores
    assert restored.records_to_replay == 0
    assert logged.rows() == logged.logged()


def source(outcome: StoreOutcome) -> str:
    assert outcome.snapshot is not None, outcome.error
    return outcome.snapshot.description.source


def keep_files(
    logged: LoggedStore, offset: int | None, status: int, more: Mapping[bytes, bytes] | None = None
) -> None:
    """Leave the files of an application that was running: an offset or none, and its status."""
    noted = {b"status": status.to_bytes(8, "big")}
    if offset is not None:
        noted[f"{logged.changelog.topic}-0".encode()] = offset.to_bytes(8, "big")
    folder = logged.state_dir / APPLICATION / TASK / "rocksdb" / logged.name
    rows = logged.logged(0 if offset is None else offset + 1)
    make_database(folder, {"default": {**rows, **(more or {})}, "offsets": noted})
    (logged.state_dir / APPLICATION / ".lock").touch()


def set_store(logged: LoggedStore, rules: Mapping[str, object], **state: str) -> None:
    """Write a configuration file with rules for the store, and settings of the section state."""
    file = logged.folder / "snapstore.yaml"
    sections: dict[str, object] = {"stores": {logged.name: rules}}
    if state:
        sections["state"] = state
    file.write_bytes(msgspec.json.encode(sections))
    logged.settings["SNAPSTORE_CONFIG"] = str(file)


def test_a_snapshot_is_made_of_the_last_one_and_the_records_after_it(logged: LoggedStore) -> None:
    logged.write(numbered(100))
    logged.save(99)
    logged.write([Written(b"k7", None), Written(b"k8", b"new")])
    logged.abort([Written(b"k9", b"aborted")])

    outcome = take(logged)

    assert source(outcome) == "changelog"
    assert "2 records after snapshot" in outcome.remarks[0]
    check_restored(logged)


def test_the_work_folder_makes_the_next_one_cheap(logged: LoggedStore) -> None:
    logged.write([Written(b"k%06d" % n, random.randbytes(400)) for n in range(5000)])
    logged.save(4999)
    logged.write(numbered(1000))
    first = take(logged)
    logged.write(numbered(1000))

    second = take(logged)

    assert "1,000 records after the work folder" in second.remarks[0]
    assert second.reused_bytes > 10 * second.new_bytes
    assert second.reused_files >= first.reused_files
    check_restored(logged)
    assert "0 records after the work folder" in take(logged).remarks[0]


def test_a_store_without_files_needs_to_be_described(logged: LoggedStore) -> None:
    logged.write(numbered(20))
    logged.abort(numbered(3, 100))
    set_store(logged, {"format": "plain"})
    with pytest.raises(ConfigError, match=f"stores.{logged.name}.subtopology|which tasks"):
        take(logged)
    set_store(logged, {"format": "plain", "subtopology": 0})
    with pytest.raises(NotReplayableError, match="which version"):
        take(logged)

    set_store(logged, {"in_memory": True, "subtopology": 0})
    outcome = take(logged)
    assert "20 records after the beginning of the log" in outcome.remarks[0]
    assert outcome.snapshot is not None
    assert outcome.snapshot.description.store_type == "in-memory"
    assert outcome.snapshot.description.applied_offset == 23


def test_a_store_that_is_not_described_well_enough_stops_no_other(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    file = logged.folder / "snapstore.yaml"
    file.write_bytes(msgspec.json.encode({"stores": {"elsewhere": {"format": "plain"}}}))
    logged.settings["SNAPSTORE_CONFIG"] = str(file)
    (logged.state_dir / APPLICATION / "1_0").mkdir()
    make_key_value(logged.state_dir, "1_0", "other", Pairs(pairs={}, applied_offset=1))
    with logged.open() as store:
        report = store.snapshot(logged.state_dir, tasks=["0_0"], capture="disk")
        assert not report.failed
        plan = store.snapshot(logged.state_dir, capture="changelog", dry_run=True)
    assert {one.store.store for one in plan.locations} == {logged.name, "other"}
    (note,) = plan.notes
    assert note.startswith("elsewhere is left out: nothing tells which tasks")


def test_a_work_folder_of_another_topic_is_thrown_away(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    logged.write(numbered(10, 10))
    take(logged)
    logged.log.recreate(logged.changelog)
    logged.write(numbered(50, 1000))
    set_store(logged, {"format": "plain"})

    outcome = take(logged)

    assert "50 records after the beginning of the log" in outcome.remarks[0]
    assert outcome.remarks[0].count("deleted and created again") == 3
    check_restored(logged)


def make_snapshot_in_child(logged: LoggedStore, occurrence: int) -> None:
    kill_at(
        "tests.support.logged_store:snapshot_from_changelog",
        {"settings": msgspec.json.encode(logged.settings).decode()},
        "records applied",
        occurrence,
    )


def test_a_killed_run_leaves_a_work_folder_that_the_next_one_goes_on_with(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(100))
    logged.save(99)
    take(logged)
    logged.write([Written(b"k%d" % (n % 7000), b"%d" % n) for n in range(60_000)])
    make_snapshot_in_child(logged, 3)

    outcome = take(logged)

    assert "after the work folder" in outcome.remarks[0]
    check_restored(logged)


def test_a_stopped_application_is_taken_from_its_disk(logged: LoggedStore) -> None:
    logged.write(numbered(50))
    logged.keep(9)
    outcome = take(logged, None, disk=True)
    assert source(outcome) == "closed"
    assert outcome.remarks == ()


def test_a_running_application_that_is_near_enough_is_taken_from_its_disk(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(50))
    keep_files(logged, 29, status=1)
    with holding_locks([logged.state_dir / APPLICATION / ".lock"]):
        outcome = take(logged, None, disk=True)
    assert source(outcome) == "running"
    assert outcome.remarks[0] == "taken from the disk: it is 20 records behind its changelog"


@pytest.mark.parametrize("offset", [9, None], ids=["far behind", "without an offset"])
def test_a_running_application_is_rolled_forward_otherwise(
    logged: LoggedStore, offset: int | None
) -> None:
    logged.write(numbered(20_000))
    keep_files(logged, offset, status=1)
    set_store(logged, {}, guarantee="at_least_once")
    with holding_locks([logged.state_dir / APPLICATION / ".lock"]):
        outcome = take(logged, None, disk=True)
    assert source(outcome) == "changelog"
    begun = "the application's disk" if offset else "the beginning of the log"
    assert f"records after {begun}" in outcome.remarks[0]
    check_restored(logged)


def test_files_that_may_hold_aborted_writes_are_never_rolled_forward(logged: LoggedStore) -> None:
    logged.write(numbered(20_000))
    logged.abort([Written(b"never committed", b"x")])
    keep_files(logged, 9, status=1, more={b"never committed": b"x"})
    with holding_locks([logged.state_dir / APPLICATION / ".lock"]):
        outcome = take(logged, None, disk=True)
        assert source(outcome) == "changelog"
        assert "after the beginning of the log" in outcome.remarks[0]
        assert "may hold writes of a transaction that aborts" in outcome.remarks[0]
    check_restored(logged)


def test_without_kafka_only_the_disk_is_left_and_the_changelog_way_is_refused(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(50))
    keep_files(logged, None, status=1)
    del logged.settings["SNAPSTORE_KAFKA_BOOTSTRAP"]
    with holding_locks([logged.state_dir / APPLICATION / ".lock"]):
        outcome = take(logged, None, disk=True)
        assert isinstance(outcome.error, UnknownOffsetError | ExactlyOnceHotError)
    with pytest.raises(ConfigError, match="Kafka is not configured"):
        take(logged)

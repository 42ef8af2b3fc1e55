"""Replay from a real changelog into restored stores: what is applied, refused, and survives."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore import client
from snapstore.errors import (
    ChangelogTruncatedError,
    ConfigError,
    RefusedError,
    TombstoneHorizonError,
    TopicRecreatedError,
    UncheckedChangelogError,
)
from snapstore.model.report import Advanced, Event, Noted, StoreStarted
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.testing.changelog_contract import Written, numbered
from tests.support.broker import Broker
from tests.support.crash import kill_at
from tests.support.logged_store import TASK, LoggedStore
from tests.support.restore_lab import tree
from tests.support.streams_store import Pairs, make_key_value

DAY = timedelta(days=1)


@pytest.fixture
def logged(broker: Broker, tmp_path: Path) -> LoggedStore:
    return LoggedStore(broker, tmp_path)


def restore(
    logged: LoggedStore, goal: ReplayGoal | None = None, *, replace: bool = False
) -> list[Event]:
    events: list[Event] = []
    with logged.open() as store:
        store.restore(
            target=logged.target,
            replay=goal or ReplayGoal(),
            listener=events.append,
            replace=replace,
        )
    return events


def replay(
    logged: LoggedStore,
    goal: ReplayGoal | None = None,
    *,
    allow_unchecked_changelog: bool = False,
    allow_missed_tombstones: bool = False,
) -> None:
    client.replay(
        logged.target,
        config=logged.config,
        goal=goal,
        allow_unchecked_changelog=allow_unchecked_changelog,
        allow_missed_tombstones=allow_missed_tombstones,
        clock=logged.clock,
    )


def in_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def test_a_restored_store_gets_the_records_after_it_and_notes_the_last_of_them(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(100))
    logged.save(99)
    logged.write([Written(b"k7", None), Written(b"k8", b"new"), Written(b"k200", b"v")])
    logged.abort([Written(b"k9", b"aborted"), Written(b"k10", None)])
    logged.write([Written(b"k8", b"newer")])

    events = restore(logged)

    rows = logged.rows()
    assert rows == logged.logged()
    assert (rows[b"k8"], rows[b"k9"], b"k7" in rows) == (b"newer", b"v9", False)
    assert logged.applied() == 106
    (started,) = [e for e in events if isinstance(e, StoreStarted) and e.stage == "replay"]
    assert (started.total, started.unit) == (7, "records")
    assert sum(e.amount for e in events if isinstance(e, Advanced) and e.stage == "replay") == 7


def test_a_tail_of_markers_alone_ends_and_is_noted(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    logged.abort([Written(b"k1", b"aborted")])
    restore(logged)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 11)


def test_offset_0_is_read_again_since_it_is_also_noted_where_nothing_was_applied(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(3))
    pairs = Pairs(pairs={}, applied_offset=0)
    make_key_value(logged.state_dir, TASK, logged.name, pairs)
    with logged.open() as store:
        assert not store.snapshot(logged.state_dir).failed
    restore(logged)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 2)


def test_an_empty_log_that_does_not_begin_at_0_is_no_gap(logged: LoggedStore) -> None:
    logged.log.configure(
        "TOPIC", logged.changelog.topic, {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    )
    logged.write(numbered(50))
    logged.save(49)
    logged.save(30)
    logged.log.cut_start(logged.changelog, 50)
    with logged.open() as store:
        (newest, older) = store.list(application="orders").snapshots
        store.restore([newest.id], target=logged.target, replay=ReplayGoal())
        assert logged.applied() == 49
        with pytest.raises(ChangelogTruncatedError, match="31 to 49"):
            store.restore([older.id], target=logged.target, replay=ReplayGoal(), replace=True)


def test_a_replay_stops_where_it_is_told_and_goes_on_from_there(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    logged.write(numbered(10, 10))

    restore(logged, ReplayGoal(to_offset=14))
    assert (logged.rows(), logged.applied()) == (logged.logged(15), 14)

    replay(logged)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 19)
    with pytest.raises(RefusedError, match="beyond 14"):
        replay(logged, ReplayGoal(to_offset=14))
    with pytest.raises(ConfigError, match="there is no offset 20"):
        replay(logged, ReplayGoal(to_offset=20))


def test_a_replay_to_a_time_takes_an_older_snapshot_where_the_newest_is_beyond(
    logged: LoggedStore,
) -> None:
    hour = timedelta(hours=1)
    began = datetime.now(UTC) - 20 * hour
    hourly = [Written(b"a%d" % n, b"v", in_ms(began + n * hour)) for n in range(10)]
    logged.write(hourly[:5])
    logged.save(4)
    logged.write(hourly[5:9])
    logged.save(8)
    logged.write(hourly[9:])
    goal = ReplayGoal(to_time=began + 6.5 * hour)
    events = restore(logged, goal)
    assert (logged.rows(), logged.applied()) == (logged.logged(7), 6)
    notes = [event.message for event in events if isinstance(event, Noted)]
    assert any("passed over" in note and "beyond 6" in note for note in notes)


def test_a_killed_replay_goes_on_and_the_target_is_whole_at_any_time(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(1000))
    logged.save(999)
    logged.write([Written(b"k%d" % (n % 5000), b"%d" % n) for n in range(60_000)])
    function = "tests.support.logged_store:restore_and_replay"
    arguments = {
        "settings": msgspec.json.encode(logged.settings).decode(),
        "target": str(logged.target),
    }
    for occurrence in (1, 3):
        kill_at(function, arguments, "records applied", occurrence)
        assert not list(logged.target.glob("orders/0_0"))
    events = restore(logged, replace=True)
    notes = [event.message for event in events if isinstance(event, Noted)]
    assert any("going on with the replay" in note for note in notes)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 60_999)
    assert not list(logged.target.rglob(".snapstore"))


def test_a_topic_made_again_is_not_the_one_that_was_restored(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    restore(logged)
    logged.log.recreate(logged.changelog)
    logged.write(numbered(50))
    before = tree(logged.target)
    with pytest.raises(TopicRecreatedError):
        replay(logged)
    with pytest.raises(TopicRecreatedError):
        restore(logged, replace=True)
    assert tree(logged.target) == before


def test_a_directory_that_nobody_restored_here_is_replayed_only_if_that_is_allowed(
    logged: LoggedStore,
) -> None:
    logged.write(numbered(20))
    logged.keep(9)
    logged.target = logged.state_dir
    (logged.target / "orders" / ".lock").touch()
    before = tree(logged.target)
    with pytest.raises(UncheckedChangelogError) as caught:
        replay(logged)
    assert "--allow-unchecked-changelog" in str(caught.value.hint)
    assert tree(logged.target) == before
    replay(logged, allow_unchecked_changelog=True)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 19)


def test_past_the_horizon_a_tail_is_replayed_only_if_it_has_no_gap(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    logged.write(numbered(10, 10))
    logged.ahead = 2 * DAY
    restore(logged)
    assert logged.rows() == logged.logged()

    logged.abort([Written(b"k1", b"aborted")])
    before = tree(logged.target)
    with pytest.raises(TombstoneHorizonError, match="may have been compacted away"):
        replay(logged)
    assert tree(logged.target) == before
    with pytest.raises(TombstoneHorizonError):
        restore(logged, replace=True)
    kept = {name: each for name, each in tree(logged.target).items() if ".snapstore" not in name}
    assert kept == before
    replay(logged, allow_missed_tombstones=True)
    assert (logged.rows(), logged.applied()) == (logged.logged(), 21)


@pytest.mark.slow
def test_a_deletion_that_compaction_has_taken_comes_back_only_if_that_is_allowed(
    broker: Broker, tmp_path: Path
) -> None:
    eager = {"delete.retention.ms": "1", "segment.ms": "50", "min.cleanable.dirty.ratio": "0.001"}
    logged = LoggedStore(broker, tmp_path, eager)
    logged.log.configure("BROKER", "1", {"log.cleaner.backoff.ms": "200"})
    try:
        logged.write([Written(b"k%d" % n, b"v", in_ms(datetime.now(UTC))) for n in range(10)])
        logged.save(9)
        logged.write([Written(b"k7", None, in_ms(datetime.now(UTC)))])
        deadline = time.monotonic() + 300
        while logged.holds_tombstone(10):
            assert time.monotonic() < deadline, "the deletion was not compacted away"
            time.sleep(0.3)
            logged.write([Written(b"other", b"v", in_ms(datetime.now(UTC)))])
    finally:
        logged.log.configure("BROKER", "1", {"log.cleaner.backoff.ms": None})

    with logged.open() as store:
        for goal in (None, ReplayGoal()):
            with pytest.raises(TombstoneHorizonError):
                store.restore(target=logged.target, replay=goal)
        assert not (logged.target / "orders" / TASK).exists()
        store.restore(target=logged.target, replay=ReplayGoal(), allow_missed_tombstones=True)
    assert b"k7" in logged.rows()
    assert b"k7" not in logged.logged()


def test_the_deadline_is_told_when_the_application_replays(logged: LoggedStore) -> None:
    logged.write(numbered(10))
    logged.save(9)
    events: list[Event] = []
    with logged.open() as store:
        report = store.restore(target=logged.target, listener=events.append)
    (restored,) = report.stores
    assert restored.records_to_replay == 0
    assert restored.replay_before is not None
    assert DAY - timedelta(minutes=10) < restored.replay_before - logged.clock() < DAY
    assert any("start the application in time" in e.message for e in events if isinstance(e, Noted))

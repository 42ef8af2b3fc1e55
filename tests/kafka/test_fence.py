"""Fences taken from a real log, and checked after something happened to it."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from snapstore.errors import (
    ChangelogTruncatedError,
    LogDivergedError,
    SnapstoreError,
    TombstoneHorizonError,
    TopicRecreatedError,
)
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import Overrides, ResumePlan, confirm_tail, require_deadline
from snapstore.model.snapshot import Fence, RecordMark
from snapstore.model.store import ChangelogPosition
from snapstore.operations.fence import check_fence, take_fence
from snapstore.testing.changelog_contract import numbered, read_all
from tests.kafka.writer import BrokerLogs

T = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MARGIN = timedelta(minutes=5)


def at(partition: ChangelogPartition, applied_offset: int) -> ChangelogPosition:
    return ChangelogPosition(partition, applied_offset)


def check(
    changelog: KafkaChangelog, position: ChangelogPosition, fence: Fence, now: datetime
) -> ResumePlan:
    return check_fence(
        changelog, position, fence, now=now, overrides=Overrides(), clock_margin=MARGIN
    )


def test_a_fence_of_a_store_that_holds_everything_dates_its_deletions_from_the_capture(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))

    fence = take_fence(changelog, at(partition, 9), now=T)

    assert fence.end_offset == fence.high_watermark == 10
    assert fence.applied == fence.last == changelog.mark(partition, 9)
    assert fence.behind_since == fence.observed_at == T
    assert (fence.delete_retention_ms, fence.cleanup_policy) == (86_400_000, "compact")


def test_a_store_that_is_behind_needs_an_earlier_observation(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    before = changelog.inspect(partition, now=T - HOUR)
    first = take_fence(changelog, at(partition, 4), now=T - HOUR)
    log.append(partition, numbered(10))

    assert first.behind_since is None
    alone = take_fence(changelog, at(partition, 12), now=T)
    assert alone.behind_since is None
    assert take_fence(changelog, at(partition, 12), now=T, before=before).behind_since == T - HOUR
    assert take_fence(changelog, at(partition, 12), now=T, earlier=[first]).behind_since == T - HOUR


def test_an_observation_of_another_topic_dates_nothing(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition, other = log.create(), log.create()
    log.append(partition, numbered(10))
    foreign = take_fence(changelog, at(other, -1), now=T - HOUR)

    assert take_fence(changelog, at(partition, 4), now=T, earlier=[foreign]).behind_since is None


def test_an_open_transaction_dates_nothing(changelog: KafkaChangelog, log: BrokerLogs) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    transaction = log.begin(partition, numbered(2))
    fence = take_fence(changelog, at(partition, 9), now=T)
    log.end(partition, transaction, commit=False)

    assert (fence.end_offset, fence.high_watermark) == (10, 12)
    assert fence.behind_since is None


def test_files_that_hold_more_than_the_log_are_not_of_this_log(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    with pytest.raises(LogDivergedError, match="is shorter than the store"):
        take_fence(changelog, at(partition, 10), now=T)


def test_a_topic_replaced_during_the_capture_is_refused(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    before = changelog.inspect(partition, now=T)
    log.recreate(partition)
    log.append(partition, numbered(10))
    with pytest.raises(TopicRecreatedError, match="replaced while the store was captured"):
        take_fence(changelog, at(partition, 9), now=T, before=before)


def test_the_tail_is_replayed_and_passes_while_the_deletions_are_safe(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    fence = take_fence(changelog, at(partition, 9), now=T)
    log.append_in_transaction(partition, numbered(5), commit=True)

    plan = check(changelog, at(partition, 9), fence, T + HOUR)
    records, report = read_all(changelog, partition, plan.start, plan.stop, plan.leader_epoch)

    assert (plan.start, plan.stop, plan.deadline) == (10, 16, T + DAY - MARGIN)
    assert len(records) == 5
    require_deadline(plan)
    confirm_tail(plan, report, T + 2 * HOUR)
    with pytest.raises(TombstoneHorizonError):
        confirm_tail(plan, report, T + DAY)


def test_beyond_the_horizon_a_tail_without_a_gap_is_accepted_and_one_with_a_gap_is_not(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    fence = take_fence(changelog, at(partition, 9), now=T)
    log.append(partition, numbered(5))
    late = T + 2 * DAY

    plan = check(changelog, at(partition, 9), fence, late)
    assert plan.gap_free_required
    confirm_tail(plan, read_all(changelog, partition, plan.start, plan.stop)[1], late)

    log.append_in_transaction(partition, numbered(1), commit=False)
    plan = check(changelog, at(partition, 9), fence, late)
    with pytest.raises(TombstoneHorizonError):
        confirm_tail(plan, read_all(changelog, partition, plan.start, plan.stop)[1], late)


def test_nothing_to_replay_is_safe_however_old_the_snapshot_is(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    fence = take_fence(changelog, at(partition, 9), now=T)

    plan = check(changelog, at(partition, 9), fence, T + 365 * DAY)

    assert plan.offsets == 0
    require_deadline(plan)
    confirm_tail(plan, read_all(changelog, partition, plan.start, plan.stop)[1], T + 365 * DAY)


def test_a_topic_made_again_with_the_same_records_is_refused(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    fence = take_fence(changelog, at(partition, 9), now=T)
    log.recreate(partition)
    log.append(partition, numbered(20))
    with pytest.raises(TopicRecreatedError, match="deleted and created again"):
        check(changelog, at(partition, 9), fence, T)


def test_records_deleted_beyond_the_resume_offset_are_named(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(cleanup_policy="delete")
    log.append(partition, numbered(30))
    fence = take_fence(changelog, at(partition, 9), now=T)
    log.cut_start(partition, 10)
    assert check(changelog, at(partition, 9), fence, T).start == 10
    log.cut_start(partition, 25)
    with pytest.raises(ChangelogTruncatedError, match="the records 10 to 24, which"):
        check(changelog, at(partition, 9), fence, T)


# The broker cannot be made to lose its end or to replace a record, so the fence is made to claim
# what a log that has since been cut back and written again would have shown.
DIVERGED: dict[str, dict[str, object]] = {
    "the log ended later than it does": {"end_offset": 40},
    "an epoch that the broker never had": {"end_leader_epoch": 7},
    "another record at the applied offset": {"applied": RecordMark(offset=9, sha256="00" * 32)},
    "another record at the end": {"last": RecordMark(offset=29, sha256="00" * 32)},
    "no record where there is one": {"applied": None},
}


@pytest.mark.parametrize("claim", DIVERGED.values(), ids=DIVERGED.keys())
def test_a_log_that_was_cut_back_and_written_again_is_refused(
    changelog: KafkaChangelog, log: BrokerLogs, claim: dict[str, object]
) -> None:
    partition = log.create()
    log.append(partition, numbered(30))
    position = at(partition, 9)
    fence = take_fence(changelog, position, now=T)
    check(changelog, position, fence, T)

    with pytest.raises(LogDivergedError) as raised:
        check(changelog, position, msgspec.structs.replace(fence, **claim), T)
    assert isinstance(raised.value, SnapstoreError)
    assert raised.value.hint


def test_an_empty_log_whose_offsets_are_not_zero(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(cleanup_policy="delete")
    log.append(partition, numbered(50))
    fence = take_fence(changelog, at(partition, 49), now=T)
    log.cut_start(partition, 50)

    plan = check(changelog, at(partition, 49), fence, T)

    assert (plan.start, plan.stop) == (50, 50)
    with pytest.raises(ChangelogTruncatedError, match="the records 31 to 49, which"):
        check(changelog, at(partition, 30), fence, T)

"""Take the fence of a snapshot, and check one before a replay."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from snapstore.errors import LogDivergedError, TopicRecreatedError
from snapstore.model.changelog import PartitionState
from snapstore.model.horizon import behind_since, least_delete_retention_ms
from snapstore.model.resume import CLOCK_MARGIN, Evidence, Overrides, ResumePlan, plan_resume
from snapstore.model.snapshot import Fence, RecordMark
from snapstore.model.store import ChangelogPosition
from snapstore.ports import Changelog


def take_fence(
    changelog: Changelog,
    position: ChangelogPosition,
    *,
    now: datetime,
    before: PartitionState | None = None,
    earlier: Sequence[Fence] = (),
) -> Fence:
    """Record what must still be true of the log when the snapshot is replayed on.

    Call it after the capture: ``now`` is a wall time read after the files were held still and
    before this call. ``before`` is the partition as it was when the capture began, ``earlier`` the
    fences of the same changelog partition in the catalog: one of them may have seen the log end at
    or below the resume offset, which dates the deletions that follow. Raises TopicRecreatedError
    or LogDivergedError when the files cannot be of this log.
    """
    state = changelog.inspect(position.changelog, now=now)
    return fence_at(changelog, position, state, before=before, earlier=earlier)


def fence_at(
    changelog: Changelog,
    position: ChangelogPosition,
    state: PartitionState,
    *,
    before: PartitionState | None = None,
    earlier: Sequence[Fence] = (),
) -> Fence:
    """As ``take_fence``, for a partition that was looked at just now."""
    if before is not None:
        _check_same_log(before, state)
    if position.resume_offset > state.high_watermark:
        raise LogDivergedError(
            f"{position.changelog} is shorter than the store: it ends before "
            f"{state.high_watermark}, and offset {position.applied_offset} was applied",
            hint="the store is not of this topic: check the cluster, or rebuild the store",
            changelog=str(position.changelog),
            applied_offset=position.applied_offset,
            high_watermark=state.high_watermark,
        )
    seen = [*_of_topic(state, earlier), *([before] if before else ()), state]
    last = changelog.last_mark(position.changelog, start=state.log_start, stop=state.log_end)
    since = behind_since(position.resume_offset, seen)
    if since is None and _holds_all(position, state, last):
        since = state.observed_at
    return Fence(
        cluster_id=state.cluster_id,
        topic_id=state.topic_id,
        partition_count=state.partition_count,
        end_offset=state.log_end,
        applied=_mark(changelog, state, position.applied_offset),
        last=last,
        end_leader_epoch=state.end_leader_epoch,
        high_watermark=state.high_watermark,
        observed_at=state.observed_at,
        behind_since=since,
        delete_retention_ms=least_delete_retention_ms(since, seen),
        cleanup_policy=state.cleanup_policy,
    )


def check_fence(
    changelog: Changelog,
    position: ChangelogPosition,
    fence: Fence | None,
    *,
    now: datetime,
    overrides: Overrides,
    clock_margin: timedelta = CLOCK_MARGIN,
    deletions_applied: bool = True,
) -> ResumePlan:
    """Compare the log with the fence and return the records to replay.

    Raises the refusal (see ``plan_resume``), or KafkaError where the log could not be read.
    ``now`` is a wall time read before this call.
    """
    state = changelog.inspect(position.changelog, now=now)
    return check_seen(
        changelog,
        state,
        position,
        fence,
        overrides=overrides,
        clock_margin=clock_margin,
        deletions_applied=deletions_applied,
    )


def check_seen(
    changelog: Changelog,
    state: PartitionState,
    position: ChangelogPosition,
    fence: Fence | None,
    *,
    overrides: Overrides,
    clock_margin: timedelta = CLOCK_MARGIN,
    deletions_applied: bool = True,
    between: Sequence[Fence] = (),
) -> ResumePlan:
    """As ``check_fence``, for a partition that was looked at already.

    ``between`` are fences of the same changelog partition that were taken later.
    """
    last_offset = fence.last.offset if fence is not None and fence.last is not None else None
    evidence = Evidence(
        state=state,
        applied=_mark(changelog, state, position.applied_offset),
        last=_mark(changelog, state, last_offset),
        between=tuple(_of_topic(state, between)),
    )
    plan = plan_resume(
        position,
        fence,
        evidence,
        overrides=overrides,
        clock_margin=clock_margin,
        deletions_applied=deletions_applied,
    )
    if fence is not None and fence.end_leader_epoch is not None:
        offset = max(fence.end_offset, state.log_start)
        changelog.check_history(
            position.changelog, offset=offset, leader_epoch=fence.end_leader_epoch
        )
    return plan


def _holds_all(position: ChangelogPosition, state: PartitionState, last: RecordMark | None) -> bool:
    """Whether only markers of transactions, or aborted records, follow the applied offset.

    So it is after each clean close of an exactly-once application.
    """
    return (
        last is not None
        and last.offset < position.resume_offset
        and state.log_end == state.high_watermark
    )


def _mark(changelog: Changelog, state: PartitionState, offset: int | None) -> RecordMark | None:
    if offset is None or not state.log_start <= offset < state.log_end:
        return None
    return changelog.mark(state.changelog, offset)


def _of_topic(state: PartitionState, fences: Sequence[Fence]) -> list[Fence]:
    identity = (state.cluster_id, state.topic_id)
    same = [fence for fence in fences if (fence.cluster_id, fence.topic_id) == identity]
    return same if state.topic_id else []


def _check_same_log(before: PartitionState, after: PartitionState) -> None:
    changelog = after.changelog
    if (before.cluster_id, before.topic_id) != (after.cluster_id, after.topic_id):
        raise TopicRecreatedError(
            f"{changelog} was replaced while the store was captured",
            hint="try again once the application has settled",
            changelog=str(changelog),
            expected=before.topic_id,
            found=after.topic_id,
        )
    if after.log_end < before.log_end:
        raise LogDivergedError(
            f"{changelog} was cut back from {before.log_end} to {after.log_end} while the store "
            "was captured",
            hint="try again once the application has settled",
            changelog=str(changelog),
        )

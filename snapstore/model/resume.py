"""Decide whether a store can be brought up to date from its changelog, and from where to where."""

from datetime import datetime, timedelta

import msgspec

from snapstore.errors import (
    ChangelogTruncatedError,
    KafkaError,
    LogDivergedError,
    PartitionCountError,
    TombstoneHorizonError,
    TopicRecreatedError,
    UncheckedChangelogError,
)
from snapstore.model.accepted import Danger
from snapstore.model.changelog import PartitionState, TailReport
from snapstore.model.horizon import ever_compacted, replay_deadline, retained_until
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import Deletion, Fence, RecordMark
from snapstore.model.store import ChangelogPosition
from snapstore.model.units import count

CLOCK_MARGIN = timedelta(minutes=5)

_OTHER_SNAPSHOT = "use another snapshot, or let the application rebuild from the changelog"


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Dangers that the operator accepts.

    ``allow_unchecked_changelog``: nothing proves that the changelog is the one that the snapshot
    was taken from. ``allow_missed_tombstones``: keys deleted after the snapshot may come back.
    """

    allow_unchecked_changelog: bool = False
    allow_missed_tombstones: bool = False


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the log shows now, at the offsets where the fence took its marks.

    ``between`` are fences that later snapshots took of the same topic.
    """

    state: PartitionState
    applied: RecordMark | None = None
    last: RecordMark | None = None
    between: tuple[Fence, ...] = ()


class ResumePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Records to replay: the offsets from ``start`` to before ``stop``.

    ``leader_epoch`` is that of the record before ``start``, where known. The replay must end before
    ``deadline``, or have met no gap; with ``gap_free_required`` time proves nothing any more, and a
    tail without a gap is the only safe one. Neither: compaction cannot have taken a deletion away.
    ``deletions`` are to be applied to the files before the replay, with those that the snapshot
    notes. ``read_again`` of the offsets were applied already, as far as anybody can tell.
    ``accepted`` are dangers that would have refused the plan, had the operator not accepted them.
    ``notes`` are sentences for the operator.
    """

    changelog: ChangelogPartition
    cluster_id: str
    topic_id: str
    start: int
    stop: int
    leader_epoch: int | None = None
    deadline: datetime | None = None
    gap_free_required: bool = False
    deletions: tuple[Deletion, ...] = ()
    read_again: int = 0
    accepted: tuple[Danger, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def offsets(self) -> int:
        """How many offsets lie in the range: no fewer than records."""
        return self.stop - self.start

    @property
    def behind(self) -> int:
        """How many offsets follow the applied offset: no fewer than records."""
        return max(0, self.offsets - self.read_again)


def plan_resume(
    position: ChangelogPosition,
    fence: Fence | None,
    evidence: Evidence,
    *,
    overrides: Overrides,
    clock_margin: timedelta = CLOCK_MARGIN,
    deletions_applied: bool = True,
) -> ResumePlan:
    """Return the range of records to replay, or raise the reason it would be wrong.

    ``deletions_applied``: see ``replay_deadline``.

    Checked in the order of how final they are: another topic, lost records, other records. Lost
    deletions are for ``confirm_tail`` and ``require_deadline`` to refuse, since a tail without a
    gap disproves them. ``fence`` is None where none was taken.
    """
    state = evidence.state
    accepted = _check_identity(position, fence, state, overrides)
    start = _start(position, state)
    _check_bounds(position, fence, state)
    if fence is not None:
        _check_marks(position, fence, evidence)
    plan = ResumePlan(
        changelog=position.changelog,
        cluster_id=state.cluster_id,
        topic_id=state.topic_id,
        start=start,
        stop=state.log_end,
        leader_epoch=_epoch_before(start, fence),
        read_again=position.resume_offset - start,
        accepted=accepted,
    )
    if not ever_compacted(fence, state, evidence.between):
        return plan
    deadline = replay_deadline(
        position,
        fence,
        state,
        clock_margin,
        between=evidence.between,
        deletions_applied=deletions_applied,
    )
    missed = deadline is None or state.observed_at >= deadline
    if overrides.allow_missed_tombstones:
        dangers: tuple[Danger, ...] = ("missed_tombstones",) if missed else ()
        return msgspec.structs.replace(plan, accepted=(*accepted, *dangers))
    return msgspec.structs.replace(plan, deadline=deadline, gap_free_required=missed)


def plan_rebuild(state: PartitionState, *, clock_margin: timedelta = CLOCK_MARGIN) -> ResumePlan:
    """Return the range that fills an empty store: all that the log still has."""
    deadline = retained_until(state.observed_at, state.delete_retention_ms, clock_margin)
    return ResumePlan(
        changelog=state.changelog,
        cluster_id=state.cluster_id,
        topic_id=state.topic_id,
        start=state.log_start,
        stop=state.log_end,
        deadline=deadline if state.compacted else None,
    )


def confirm_tail(plan: ResumePlan, tail: TailReport, finished_at: datetime) -> None:
    """Accept what was read, or raise TombstoneHorizonError.

    ``finished_at`` is the wall time after the last record was read.
    """
    if (tail.start, tail.stop) != (plan.start, plan.stop):
        raise ValueError(f"read {tail.start}..{tail.stop}, planned {plan.start}..{plan.stop}")
    if tail.gap_free:
        return
    late = plan.deadline is not None and finished_at >= plan.deadline
    if plan.gap_free_required or late:
        raise _horizon_error(plan, missing=tail.missing)


def require_deadline(plan: ResumePlan) -> None:
    """Raise TombstoneHorizonError unless time alone proves that no deletion is lost.

    For a replay by the application itself: nobody can say what gaps it will meet.
    """
    if plan.gap_free_required:
        raise _horizon_error(plan)


def require_same_topic(plan: ResumePlan, state: PartitionState) -> None:
    """Raise TopicRecreatedError when the topic is no longer the one that the plan was made for."""
    if (state.cluster_id, state.topic_id) != (plan.cluster_id, plan.topic_id):
        raise TopicRecreatedError(
            f"topic {plan.changelog.topic} was replaced while it was being read",
            hint="what was applied is of the old topic: drop it, and start over",
            changelog=str(plan.changelog),
            expected=plan.topic_id,
            found=state.topic_id,
        )


def require_checked(subject: str, overrides: Overrides) -> None:
    """Raise UncheckedChangelogError unless the operator accepts that nothing is proved."""
    if not overrides.allow_unchecked_changelog:
        raise UncheckedChangelogError(
            f"nothing proves {subject} against its changelog",
            hint="configure Kafka and take fenced snapshots, or pass --allow-unchecked-changelog",
            subject=subject,
        )


def _check_identity(
    position: ChangelogPosition, fence: Fence | None, state: PartitionState, overrides: Overrides
) -> tuple[Danger, ...]:
    """Raise for another topic; return what had to be accepted since nothing tells."""
    changelog = position.changelog
    if fence is None:
        require_checked(f"the position in {changelog}, which was noted without a fence,", overrides)
        return ("unchecked_changelog",)
    if fence.cluster_id != state.cluster_id:
        raise TopicRecreatedError(
            f"{changelog} is in another cluster than the one the snapshot was taken from",
            hint=f"check the bootstrap address; {_OTHER_SNAPSHOT}",
            changelog=str(changelog),
            expected=fence.cluster_id,
            found=state.cluster_id,
        )
    if not (fence.topic_id and state.topic_id):
        require_checked(f"the position in {changelog}, a topic without an id,", overrides)
    elif fence.topic_id != state.topic_id:
        raise TopicRecreatedError(
            f"{changelog} is not the topic this snapshot was taken from: it was deleted "
            "and created again",
            hint=_OTHER_SNAPSHOT,
            changelog=str(changelog),
            expected=fence.topic_id,
            found=state.topic_id,
        )
    if fence.partition_count != state.partition_count:
        raise PartitionCountError(
            f"topic {changelog.topic} had {count(fence.partition_count, 'partition')} and has "
            f"{state.partition_count} now: keys have moved",
            hint="let the application rebuild its stores",
            changelog=str(changelog),
            expected=fence.partition_count,
            found=state.partition_count,
        )
    unchecked = not (fence.topic_id and state.topic_id)
    return ("unchecked_changelog",) if unchecked else ()


def first_to_read(position: ChangelogPosition) -> int:
    """Return the resume offset; 0 where the applied offset is 0.

    0 is also noted where nothing was applied (KAFKA-8755), so that record is read again.
    """
    return 0 if position.applied_offset == 0 else position.resume_offset


def _start(position: ChangelogPosition, state: PartitionState) -> int:
    start = first_to_read(position)
    if start < state.log_start:
        last_missing = state.log_start - 1
        raise ChangelogTruncatedError(
            f"{position.changelog} begins at {state.log_start}: the records {start} to "
            f"{last_missing}, which follow the snapshot, are gone",
            hint=_OTHER_SNAPSHOT,
            changelog=str(position.changelog),
            first_missing=start,
            last_missing=last_missing,
        )
    return start


def _check_bounds(position: ChangelogPosition, fence: Fence | None, state: PartitionState) -> None:
    changelog = position.changelog
    if position.resume_offset > state.high_watermark:
        raise _diverged(
            changelog,
            f"{changelog} is shorter than the snapshot: it ends before {state.high_watermark}, and "
            f"offset {position.applied_offset} was applied",
        )
    if fence is not None and state.log_end < fence.end_offset:
        raise _diverged(
            changelog,
            f"{changelog} was cut back: it ended before {fence.end_offset} when the snapshot was "
            f"taken, and ends before {state.log_end} now",
        )
    if fence is not None and _epoch_went_back(fence, state):
        raise _diverged(
            changelog,
            f"{changelog} has gone back from leader epoch {fence.end_leader_epoch} to "
            f"{state.end_leader_epoch}",
        )
    if position.resume_offset > state.log_end:
        raise KafkaError(
            f"an open transaction on {changelog} begins at {state.log_end}, before the resume "
            f"offset {position.resume_offset}",
            hint="try again once it has ended",
            changelog=str(changelog),
        )


def _epoch_went_back(fence: Fence, state: PartitionState) -> bool:
    if fence.end_leader_epoch is None or state.end_leader_epoch is None:
        return False
    return state.end_leader_epoch < fence.end_leader_epoch


def _check_marks(position: ChangelogPosition, fence: Fence, evidence: Evidence) -> None:
    state = evidence.state
    unmarked = position.applied_offset < fence.end_offset and fence.applied is None
    if unmarked and evidence.applied is not None:
        raise _diverged(
            position.changelog,
            f"{position.changelog} has a record at offset {position.applied_offset}, where there "
            "was none when the snapshot was taken",
        )
    for recorded, found in ((fence.applied, evidence.applied), (fence.last, evidence.last)):
        if recorded is None or recorded.offset < state.log_start:
            continue
        if found is None and not ever_compacted(fence, state):
            raise _diverged(
                position.changelog,
                f"{position.changelog} has lost the record at offset {recorded.offset}, although "
                "the topic is not compacted",
            )
        if found is not None and _differs(recorded, found):
            raise _diverged(
                position.changelog,
                f"{position.changelog} has another record at offset {recorded.offset} than when "
                "the snapshot was taken",
            )


def _differs(recorded: RecordMark, found: RecordMark) -> bool:
    epochs = (recorded.leader_epoch, found.leader_epoch)
    rewritten = None not in epochs and epochs[0] != epochs[1]
    return rewritten or recorded.sha256 != found.sha256


def _epoch_before(start: int, fence: Fence | None) -> int | None:
    if fence is None or fence.applied is None or fence.applied.offset + 1 != start:
        return None
    return fence.applied.leader_epoch


def _diverged(changelog: ChangelogPartition, message: str) -> LogDivergedError:
    return LogDivergedError(message, hint=_OTHER_SNAPSHOT, changelog=str(changelog))


def _horizon_error(plan: ResumePlan, **facts: int) -> TombstoneHorizonError:
    if plan.deadline is None:
        reason = "it is not known since when deletions follow the snapshot"
    else:
        reason = f"they were safe only until {plan.deadline.isoformat()}"
    return TombstoneHorizonError(
        f"deletions in {plan.changelog} may have been compacted away: {reason}",
        hint="use a newer snapshot, rebuild from the changelog, or accept that deleted keys may "
        "come back: --allow-missed-tombstones",
        changelog=str(plan.changelog),
        deadline=plan.deadline.isoformat() if plan.deadline else None,
        **facts,
    )

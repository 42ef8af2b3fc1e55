"""Tell until when every deletion that follows a snapshot is still in the log (KIP-630).

Compaction may take a deletion away ``delete.retention.ms`` after it was appended. When that was,
the log does not tell; but nothing beyond a resume offset was appended before a time at which the
log was seen to end there. That time is called T0.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from snapstore.model.changelog import PartitionState, is_compacted
from snapstore.model.snapshot import Fence
from snapstore.model.store import ChangelogPosition

Observation = Fence | PartitionState

_CENTURY_MS = 100 * 365 * 24 * 3600 * 1000


def behind_since(resume_offset: int, observations: Iterable[Observation]) -> datetime | None:
    """Return T0: the newest time at which the log ended at or below the resume offset.

    The observations are of one topic. None where each of them saw more.
    """
    times = [
        seen.observed_at
        for seen in observations
        if seen.observed_at is not None
        and seen.high_watermark is not None
        and seen.high_watermark <= resume_offset
    ]
    return max(times, default=None)


def least_delete_retention_ms(since: datetime | None, observations: Iterable[Observation]) -> int:
    """Return the smallest ``delete.retention.ms`` that was seen at that time or later."""
    return min(
        seen.delete_retention_ms
        for seen in observations
        if seen.delete_retention_ms is not None
        and (since is None or seen.observed_at is None or seen.observed_at >= since)
    )


def ever_compacted(
    fence: Fence | None, state: PartitionState, between: Sequence[Fence] = ()
) -> bool:
    """Whether compaction may have run since the snapshot; a policy not recorded counts as yes.

    ``between`` are fences that were taken of the same topic since then.
    """
    if fence is None or not fence.cleanup_policy:
        return True
    policies = [state.cleanup_policy, *(each.cleanup_policy for each in (fence, *between))]
    return any(map(is_compacted, policies))


def replay_deadline(
    position: ChangelogPosition,
    fence: Fence | None,
    state: PartitionState,
    margin: timedelta,
    *,
    between: Sequence[Fence] = (),
    deletions_applied: bool = True,
) -> datetime | None:
    """Return when the first deletion after the snapshot may go; None where that is not known.

    It is reckoned from T0, or from when the tail was noted if that gives more time:
    ``deletions_applied`` says that what was noted is deleted before the replay. The smallest
    ``delete.retention.ms`` counts that was seen since, also by the fences ``between``.

    None, too, where the clock of this host is before the time of the snapshot by more than the
    margin: then it does not tell how much time has passed.
    """
    if state.high_watermark <= position.resume_offset:
        return retained_until(state.observed_at, state.delete_retention_ms, margin)
    if fence is None:
        return None
    if fence.observed_at is not None and state.observed_at + margin < fence.observed_at:
        return None
    later: list[Observation] = [*between, state]
    dates = _dates(fence, deletions_applied=deletions_applied)
    return max((_deadline(*date, later, margin) for date in dates), default=None)


def dates_deletions(fence: Fence) -> bool:
    """Whether a fence by itself gives ``replay_deadline`` something to reckon from, or needs none.

    If not, a restore can be proved only by reading the log, as long as that has no gap.
    """
    never_compacted = bool(fence.cleanup_policy) and not is_compacted(fence.cleanup_policy)
    return never_compacted or any(_dates(fence, deletions_applied=True))


def _dates(fence: Fence, *, deletions_applied: bool) -> Iterator[tuple[datetime, int]]:
    """Yield each time that dates the deletions, with the ``delete.retention.ms`` seen then."""
    if fence.behind_since is not None and fence.delete_retention_ms is not None:
        yield fence.behind_since, fence.delete_retention_ms
    tail = fence.tail
    if tail is not None and (deletions_applied or not tail.deletions):
        yield tail.observed_at, tail.delete_retention_ms


def _deadline(
    since: datetime, retention_ms: int, later: Sequence[Observation], margin: timedelta
) -> datetime:
    now = later[-1].observed_at
    t0 = since if now is None else min(since, now)
    seen = [each.delete_retention_ms for each in later if each.delete_retention_ms is not None]
    return retained_until(t0, min(retention_ms, *seen), margin)


def retained_until(t0: datetime, delete_retention_ms: int, margin: timedelta) -> datetime:
    """Return the last time at which a deletion appended at T0 is surely there."""
    return t0 + timedelta(milliseconds=min(delete_retention_ms, _CENTURY_MS)) - margin

"""How long a changelog keeps what a snapshot still needs, and what would make it keep it longer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

import msgspec

from snapstore.model.changelog import PartitionState
from snapstore.model.resume import CLOCK_MARGIN, ResumePlan
from snapstore.model.units import format_duration

_YEAR_9000_MS = 221_845_392_000_000
_CENTURY = timedelta(days=36_500)
_RECENT = 10

Cause = Literal["delete.retention.ms", "retention.ms"]


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Until when the snapshot is surely usable, and the topic's setting that ends it.

    Deletions go by ``delete.retention.ms``, whole segments by ``retention.ms``. The latter is
    reckoned from the time of the first record that follows the snapshot, and holds where record
    times do not go back: the brokers go by the newest time of a segment.
    """

    until: datetime
    cause: Cause


def limit_of(
    plan: ResumePlan, state: PartitionState, first_timestamp_ms: int | None
) -> Limit | None:
    """Return what ends first; None where the log drops nothing that the snapshot needs.

    ``first_timestamp_ms`` is that of the first record after the snapshot, or of the nearest before
    it; None or negative where neither is known. Retention by size is not foreseen.
    """
    limits = []
    if plan.deadline is not None:
        limits.append(Limit(until=plan.deadline, cause="delete.retention.ms"))
    kept = retention(state)
    if kept is not None:
        start = _start_of_retention(plan, state, first_timestamp_ms)
        if start is not None:
            limits.append(Limit(until=start + kept, cause="retention.ms"))
    return min(limits, key=lambda limit: limit.until, default=None)


def retention(state: PartitionState) -> timedelta | None:
    """Return how long records stay whatever happens; None where none is dropped by age."""
    if "delete" not in state.cleanup_policy.split(",") or state.retention_ms is None:
        return None
    return min(timedelta(milliseconds=min(state.retention_ms, 2**50)), _CENTURY)


def usual_interval(captured: Sequence[datetime]) -> timedelta | None:
    """Return the longest pause between the last snapshots of a store; None for fewer than two."""
    times = sorted(captured)[-_RECENT:]
    pauses = [after - before for before, after in pairwise(times)]
    return max(pauses, default=None)


def advise(
    limits: Sequence[tuple[Limit, PartitionState]],
    *,
    now: datetime,
    interval: timedelta | None,
    restore_seconds: float | None,
) -> tuple[str, ...]:
    """Say what to change where a snapshot goes out of use before the next one usually comes.

    Each limit comes with the partition that it is of.
    """
    told = []
    needed = _needed(interval, restore_seconds)
    for limit, state in limits:
        left = limit.until - now
        if left <= timedelta():
            since = limit.until.isoformat(timespec="seconds").replace("+00:00", "Z")
            told.append(
                f"{state.changelog} may have dropped records since {since} that the snapshot needs:"
                f" take one now; {_remedy(limit.cause, state, needed)}"
            )
        elif interval is not None and left < interval:
            told.append(
                f"{state.changelog} may drop what the snapshot needs in"
                f" {format_duration(left.total_seconds())}, and snapshots come every"
                f" {format_duration(interval.total_seconds())}:"
                f" {_remedy(limit.cause, state, needed)}"
            )
    return tuple(dict.fromkeys(told))


def advise_on_horizon(state: PartitionState, *, dated: bool, interval: timedelta | None) -> str:
    """Say what keeps deletions from being lost; for snapshots that are past the horizon.

    ``dated``: it is known since when deletions follow the snapshot.
    """
    remedy = _remedy("delete.retention.ms", state, _needed(interval, None))
    if dated:
        return remedy
    return (
        "none of its snapshots is known to have reached the end of the log, so nothing dates the"
        " deletions that follow it: take one of the closed application or from the changelog;"
        f" {remedy}"
    )


def advise_on_truncation(state: PartitionState, interval: timedelta | None) -> str:
    """Say what keeps the start of the log from overtaking the snapshots."""
    if retention(state) is None:
        return "something deletes records of the topic: let it stop at the safe trim offset"
    return _remedy("retention.ms", state, _needed(interval, None))


def _start_of_retention(
    plan: ResumePlan, state: PartitionState, first_timestamp_ms: int | None
) -> datetime | None:
    if plan.start >= state.high_watermark:
        return state.observed_at
    if first_timestamp_ms is None or not 0 <= first_timestamp_ms < _YEAR_9000_MS:
        return None  # producers may write any time
    return datetime.fromtimestamp(first_timestamp_ms / 1000, UTC)


def _needed(interval: timedelta | None, restore_seconds: float | None) -> timedelta | None:
    """Return a retention under which the last snapshot outlives one that failed to be taken."""
    if interval is None:
        return None
    return 2 * interval + timedelta(seconds=restore_seconds or 0) + CLOCK_MARGIN


def _remedy(cause: Cause, state: PartitionState, needed: timedelta | None) -> str:
    setting = state.delete_retention_ms if cause == "delete.retention.ms" else state.retention_ms
    kept = timedelta(milliseconds=min(setting or 0, 2**50))
    often = format_duration(max(kept - CLOCK_MARGIN, timedelta()).total_seconds())
    raised = f"raise {cause} of {state.changelog.topic}"
    if needed is not None and needed > kept:
        milliseconds = -(-needed // timedelta(milliseconds=1))
        raised += f" to {milliseconds} or more"
    if kept <= CLOCK_MARGIN:
        return raised
    return f"take snapshots more often than every {often}, or {raised}"

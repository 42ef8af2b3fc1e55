"""What a catalog entry says of itself that cannot be true.

Whoever may write to a repository can put entries there, and a host with a wrong clock does so
unasked. An entry that cannot be true takes the place of no other.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from snapstore.errors import ManifestInvalidError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Description
from snapstore.model.units import spell_duration

CLOCKS_ARE_FAR_APART = timedelta(hours=1)
_GREATEST_OFFSET = 2**63 - 1


def doubt_of_key(
    listed: ListedSnapshot, *, now: datetime, stored_at: datetime | None = None
) -> str | None:
    """Say why the key of an entry cannot be true; None when nothing speaks against it.

    ``now`` is by the reader's clock, ``stored_at`` when the storage says that the entry was put.
    """
    if listed.offset_sum is not None and listed.offset_sum > listed.changelogs * _GREATEST_OFFSET:
        return f"Kafka has no offset {listed.offset_sum}"
    ahead = listed.captured_at - now
    if ahead > CLOCKS_ARE_FAR_APART:
        return (
            f"its capture time {_spell(listed.captured_at)} lies {_spell_span(ahead)} in the future"
        )
    if stored_at is not None and listed.captured_at - stored_at > CLOCKS_ARE_FAR_APART:
        return (
            f"its capture time is {_spell(listed.captured_at)}, and the storage had it at"
            f" {_spell(stored_at)} already"
        )
    return None


def doubt_of(
    listed: ListedSnapshot,
    description: Description,
    *,
    now: datetime,
    stored_at: datetime | None = None,
) -> str | None:
    """Say what of an entry cannot be true, its own fences included; None when nothing is known."""
    doubt = doubt_of_key(listed, now=now, stored_at=stored_at)
    if doubt is not None:
        return doubt
    for each in description.positions:
        fence = each.fence
        if fence is None:
            continue
        end = max(fence.end_offset, fence.high_watermark or 0)
        if each.position.applied_offset > end:
            return (
                f"its applied offset {each.position.applied_offset} lies beyond the log end {end}"
                " that was read after the capture"
            )
    return None


def require_plausible(listed: ListedSnapshot, description: Description, *, now: datetime) -> None:
    """Raise ManifestInvalidError where an entry cannot be true: nobody is to get it unasked."""
    doubt = doubt_of(listed, description, now=now)
    if doubt is not None:
        raise ManifestInvalidError(
            f"snapshot {listed.id[:12]} of {listed.store} is doubtful: {doubt}",
            hint=f"set a wrong clock right; or name it to take it all the same: {listed.id[:12]}",
            snapshot=listed.id,
        )


def seen_end(description: Description) -> int | None:
    """Return the sum of the log ends that were read after the capture; None where any is missing.

    It is comparable with ``ListedSnapshot.offset_sum``.
    """
    fences = [each.fence for each in description.positions]
    if not fences or any(fence is None for fence in fences):
        return None
    return sum(max(fence.end_offset, fence.high_watermark or 0) for fence in fences if fence)


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, when the storage had it, and the log end that was read after its capture."""

    listed: ListedSnapshot
    stored_at: datetime
    end: int | None


def contradicted(sightings: Sequence[Sighting]) -> dict[ListedSnapshot, str]:
    """Return which snapshots of one changelog lie beyond a log end that was read after them.

    A log does not become shorter unless it is cut, and what was captured before is of another
    history then.
    """
    later = sorted(sightings, key=lambda each: each.listed.captured_at)
    doubts: dict[ListedSnapshot, str] = {}
    least: Sighting | None = None
    for each in sorted(sightings, key=lambda each: each.stored_at, reverse=True):
        while later and later[-1].listed.captured_at > each.stored_at + CLOCKS_ARE_FAR_APART:
            seen = later.pop()
            if seen.end is not None and (least is None or seen.end < (least.end or 0)):
                least = seen
        if least is not None and (each.listed.offset_sum or 0) > (least.end or 0):
            doubts[each.listed] = (
                f"its applied offset {each.listed.offset_sum} lies beyond the log end {least.end}"
                f" that snapshot {least.listed.id[:12]} saw at {_spell(least.listed.captured_at)},"
                " after it was stored"
            )
    return doubts


def beyond(description: Description, log_ends: Iterable[int]) -> str | None:
    """Say that an applied offset lies beyond the present end of its log, one end a position."""
    for each, end in zip(description.positions, log_ends, strict=True):
        if each.position.applied_offset > end:
            return (
                f"its applied offset {each.position.applied_offset} lies beyond the log end {end}"
                f" of {each.position.changelog}"
            )
    return None


def _spell_span(span: timedelta) -> str:
    if span >= timedelta(days=2):
        return f"{span.days} days"
    return spell_duration(timedelta(seconds=round(span.total_seconds())))


def _spell(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")

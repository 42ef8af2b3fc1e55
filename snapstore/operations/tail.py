"""Read which keys the tail of a changelog deletes, so that compaction may take its tombstones away.

Where compaction has removed a tombstone, it removed all older records of that key before. So a copy
in which the key is deleted first, and to which the rest of the log is applied then, ends as if the
tombstone were still there. That needs no order and may be done twice.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import msgspec
from msgspec import structs

from snapstore.errors import TopicRecreatedError
from snapstore.model.changelog import ChangelogRecord, PartitionState, TailReport, is_compacted
from snapstore.model.horizon import retained_until
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import CLOCK_MARGIN, first_to_read
from snapstore.model.snapshot import Deletion, Fence, NotedTail
from snapstore.model.store import ChangelogPosition
from snapstore.model.units import count
from snapstore.ports import Changelog, Clock

MOST_RECORDS = 1_000_000
"""A longer tail is not read to note its deletions; it takes some seconds."""

MOST_DELETIONS = 20_000
MOST_KEY_BYTES = 1 << 20
"""More deletions are not noted: a manifest is read as a whole."""

_PATIENCE_S = 10.0
_PAUSE_S = 0.05

CanDelete = Callable[[PartitionState], bool]
"""Whether a key that the changelog deletes can be deleted in the files of the store."""


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """What an earlier snapshot at the same applied offset, or a lower one, has noted."""

    tail: NotedTail
    deletions: tuple[Deletion, ...]


class TailNote(msgspec.Struct, frozen=True, kw_only=True):
    """A fence with its tail noted; ``lack`` says why it could not be.

    ``gap``: because records are missing, so that no replay of the tail is proved by reading it;
    ``whole``: none is missing.
    """

    fence: Fence
    deletions: tuple[Deletion, ...] = ()
    lack: str | None = None
    gap: bool = False
    whole: bool = False


class ReadTail(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. ``deletions`` are the keys whose last record is a tombstone.

    None where they are more than are noted.
    """

    report: TailReport
    deletions: tuple[Deletion, ...] | None


def read_tail(
    changelog: Changelog,
    partition: ChangelogPartition,
    start: int,
    stop: int,
    *,
    leader_epoch: int | None = None,
    known: Iterable[Deletion] = (),
) -> ReadTail:
    """Read a range to its end; tombstones that were ``known`` before count as read.

    Raises what reading a Tail raises.
    """
    last = {each.key: each.offset for each in known if start <= each.offset < stop}
    key_bytes, few = sum(map(len, last)), True
    with changelog.read(partition, start, stop, leader_epoch=leader_epoch) as tail:
        for batch in tail:
            if few:
                key_bytes += _note(last, batch)
                few = len(last) <= MOST_DELETIONS and key_bytes <= MOST_KEY_BYTES
        report = tail.report
    if not few:
        return ReadTail(report=report, deletions=None)
    deletions = (Deletion(key, offset) for key, offset in last.items())
    return ReadTail(report=report, deletions=tuple(sorted(deletions, key=lambda each: each.offset)))


def settled(changelog: Changelog, seen: PartitionState, clock: Clock) -> PartitionState:
    """Wait for the transactions to end that were open when ``seen`` was seen, for some seconds.

    Return the partition as it is then: if they did not, its ``log_end`` is below the high watermark
    of ``seen``.
    """
    state, deadline = seen, time.monotonic() + _PATIENCE_S
    while state.log_end < seen.high_watermark and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        state = changelog.inspect(seen.changelog, now=clock())
    return state


def note_tail(
    changelog: Changelog,
    position: ChangelogPosition,
    fence: Fence,
    seen: PartitionState,
    *,
    can_delete: CanDelete,
    inherited: Callable[[], Inherited | None],
    clock: Clock,
    margin: timedelta = CLOCK_MARGIN,
) -> TailNote:
    """Note what the log deletes after the applied offset, if all of it is known.

    ``seen`` is the partition as it was when the fence was taken. Everything is known if no offset
    is missing in the tail; if no tombstone in it can be old enough to be gone, by T0; or if those
    that can be are noted in an earlier snapshot (``inherited``, asked for only then) that is recent
    enough.
    Raises TopicRecreatedError, and what reading the log raises.
    """
    if not is_compacted(fence.cleanup_policy):
        return TailNote(fence=fence)
    start, stop = first_to_read(position), seen.high_watermark
    if stop <= position.resume_offset:
        return TailNote(fence=fence, whole=True)
    if stop - start > MOST_RECORDS:
        return TailNote(fence=fence, lack=f"{count(stop - start, 'record')} follow it")
    if settled(changelog, seen, clock).log_end < stop:
        lack = f"a transaction is open in {position.changelog}"
        return TailNote(fence=fence, lack=lack)
    tail = read_tail(changelog, position.changelog, start, stop)
    after = changelog.inspect(position.changelog, now=clock())
    _require_same_topic(fence, after)
    whole = tail.report.gap_free
    retention_ms = min(seen.delete_retention_ms, after.delete_retention_ms)
    if not (whole or _young(fence, retention_ms, clock, margin)):
        lack = f"{count(tail.report.missing, 'offset')} after it hold no record any more"
        earlier = inherited()
        if earlier is None:
            return TailNote(fence=fence, lack=lack, gap=True)
        tail = read_tail(changelog, position.changelog, start, stop, known=earlier.deletions)
        if not _fresh(earlier.tail, retention_ms, clock, margin):
            return TailNote(fence=fence, lack=lack, gap=True)
    if tail.deletions is None:
        lack = f"more than {MOST_DELETIONS:,} keys, or {MOST_KEY_BYTES:,} bytes, were deleted"
        return TailNote(fence=fence, lack=lack, whole=whole)
    if tail.deletions and not can_delete(after):
        keys = count(len(tail.deletions), "key")
        lack = f"it cannot be said where its files hold the {keys} deleted since"
        return TailNote(fence=fence, lack=lack, whole=whole)
    noted = NotedTail(
        stop=stop,
        observed_at=seen.observed_at,
        delete_retention_ms=retention_ms,
        deletions=len(tail.deletions),
    )
    noted_fence = structs.replace(fence, tail=noted)
    return TailNote(fence=noted_fence, deletions=tail.deletions, whole=whole)


def _young(fence: Fence, retention_ms: int, clock: Clock, margin: timedelta) -> bool:
    """Whether nothing after the applied offset is old enough for its tombstones to be gone."""
    if fence.behind_since is None or fence.delete_retention_ms is None:
        return False
    least = min(fence.delete_retention_ms, retention_ms)
    return clock() < retained_until(fence.behind_since, least, margin)


def _fresh(tail: NotedTail, retention_ms: int, clock: Clock, margin: timedelta) -> bool:
    least = min(tail.delete_retention_ms, retention_ms)
    return clock() < retained_until(tail.observed_at, least, margin)


def _require_same_topic(fence: Fence, state: PartitionState) -> None:
    if (fence.cluster_id, fence.topic_id) != (state.cluster_id, state.topic_id):
        raise TopicRecreatedError(
            f"{state.changelog} was replaced while the store was captured",
            hint="try again once the application has settled",
            changelog=str(state.changelog),
            expected=fence.topic_id,
            found=state.topic_id,
        )


def _note(last: dict[bytes, int], records: Sequence[ChangelogRecord]) -> int:
    """Apply records in order; return by how many bytes the keys have grown."""
    grown = 0
    for record in records:
        key = record.key
        if key is None or record.offset < last.get(key, -1):
            continue
        if record.value is None:
            grown += 0 if key in last else len(key)
            last[key] = record.offset
        elif key in last:
            del last[key]
            grown -= len(key)
    return grown

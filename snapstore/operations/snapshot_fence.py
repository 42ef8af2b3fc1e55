"""Fence the snapshots of one run: what the log showed before and after each capture."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import msgspec

from snapstore.errors import (
    ChangelogGoneError,
    ChangelogTruncatedError,
    IntegrityError,
    KafkaError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
    TombstoneHorizonError,
)
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.resume import Evidence, Overrides, plan_resume, require_deadline
from snapstore.model.snapshot import Fence, NotedDeletions, Position
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.operations.fence import fence_at
from snapstore.operations.proof import can_replay
from snapstore.operations.replay_layout import deleting_layout, replay_layout
from snapstore.operations.tail import Inherited, TailNote, note_tail
from snapstore.ports import Changelog, Clock, Layout, StoreView
from snapstore.repository import Catalog, Repository

_FARTHEST_BACK = 20

UNFENCED = (
    "no fence was taken, since the changelog was not looked at: a restore will have to be told"
    " --allow-unchecked-changelog"
)


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """Positions with their fences, and the deletions that these tell of.

    ``refusal`` says why nothing proves that the snapshot stays restorable, None if that is proved.
    With the fact ``by_replay`` it can be restored all the same, by snapstore's own replay, as long
    as compaction has not begun. ``final``: no other way to take one would do better.
    """

    positions: tuple[Position, ...]
    deletions: tuple[NotedDeletions, ...] = ()
    refusal: SnapstoreError | None = None
    final: bool = False


class Fencer:
    """Takes fences; safe for several threads. Raises what Changelog and ``take_fence`` raise."""

    def __init__(
        self, changelog: Changelog, repository: Repository, layout: Layout, clock: Clock
    ) -> None:
        self._changelog = changelog
        self._repository = repository
        self._layout = layout
        self._clock = clock

    def before(
        self, changelogs: Iterable[ChangelogPartition]
    ) -> Mapping[ChangelogPartition, PartitionState]:
        """Describe partitions before a capture; one that does not exist is left out.

        Where the log ended then dates the deletions that follow the snapshot.
        """
        states = {}
        for changelog in changelogs:
            try:
                states[changelog] = self._changelog.inspect(changelog, now=self._clock())
            except ChangelogGoneError:
                continue
        return states

    def take(
        self,
        location: StoreLocation,
        view: StoreView,
        positions: Sequence[ChangelogPosition],
        before: Mapping[ChangelogPartition, PartitionState],
    ) -> Fenced:
        """Fence every position, once the files are held still; ``view`` sees them."""
        found = [
            self._fenced(location, view, each, before.get(each.changelog)) for each in positions
        ]
        return Fenced(
            positions=tuple(each for one in found for each in one.positions),
            deletions=tuple(each for one in found for each in one.deletions),
            refusal=next((one.refusal for one in found if one.refusal is not None), None),
            final=any(one.final for one in found),
        )

    @staticmethod
    def lasts(before: Sequence[Position], now: Sequence[Position]) -> bool:
        """Whether a snapshot at the same positions stays usable about as long as a new one would.

        So it is where nothing follows, or while half of the time is left that a new one had.
        """
        return all(map(_lasts, before, now))

    def _fenced(
        self,
        location: StoreLocation,
        view: StoreView,
        position: ChangelogPosition,
        before: PartitionState | None,
    ) -> Fenced:
        changelog, store = self._changelog, location.store
        seen_end = before is not None and before.high_watermark <= position.resume_offset
        catalog = self._repository.catalog
        earlier = () if seen_end else earlier_fences(catalog, store, position)
        state = changelog.inspect(position.changelog, now=self._clock())
        fence = fence_at(changelog, position, state, before=before, earlier=earlier)

        def can_delete(state: PartitionState) -> bool:
            deleting = deleting_layout(self._layout)
            return deleting is not None and deleting.can_delete(
                store, location.store_type, state, view
            )

        try:
            note = note_tail(
                changelog,
                position,
                fence,
                state,
                can_delete=can_delete,
                inherited=partial(inherited, self._repository, store, position, fence),
                clock=self._clock,
            )
        except ChangelogTruncatedError as error:
            return Fenced(positions=(Position(position=position, fence=fence),), refusal=error)
        refusal = _refusal(position, note, state)
        if isinstance(refusal, TombstoneHorizonError) and note.whole:
            refusal.facts["by_replay"] = can_replay(self._layout, store, location.store_type)
        return Fenced(
            positions=(Position(position=position, fence=note.fence),),
            deletions=(NotedDeletions(changelog=position.changelog, deletions=note.deletions),)
            if note.deletions
            else (),
            refusal=refusal,
            final=isinstance(refusal, TombstoneHorizonError) and note.lack is None,
        )


def _lasts(before: Position, now: Position) -> bool:
    old, new = before.fence, now.fence
    if old is None or new is None:
        return old is new
    if (old.cluster_id, old.topic_id) != (new.cluster_id, new.topic_id):
        return False
    if new.tail is None:
        return True
    dates = [old.behind_since, None if old.tail is None else old.tail.observed_at]
    newest = max((each for each in dates if each is not None), default=None)
    half = timedelta(milliseconds=min(new.tail.delete_retention_ms, 2**50) / 2)
    return newest is not None and new.tail.observed_at - newest <= half


def _refusal(
    position: ChangelogPosition, note: TailNote, state: PartitionState
) -> SnapstoreError | None:
    """Say why a restore would refuse a snapshot with that fence, by the rule that it goes by."""
    fence = note.fence
    evidence = Evidence(state=state, applied=fence.applied, last=fence.last)
    try:
        require_deadline(plan_resume(position, fence, evidence, overrides=Overrides()))
    except TombstoneHorizonError as error:
        if note.lack is None:
            return error
        return TombstoneHorizonError(
            f"nothing dates the deletions in {position.changelog} after offset "
            f"{position.applied_offset}, and {note.lack}",
            hint="take it from the changelog (snapshot --from-changelog), or when the application "
            "is closed",
            changelog=str(position.changelog),
            gap=note.gap,
        )
    except (RefusedError, KafkaError) as error:
        return error
    return None


def inherited(
    repository: Repository, store: StoreId, position: ChangelogPosition, fence: Fence
) -> Inherited | None:
    """Return what the newest snapshot with the same or a lower offset notes of the same log."""
    for listed in repository.catalog.list_store(store).snapshots[:_FARTHEST_BACK]:
        try:
            description = repository.catalog.load(listed).description
            for each in description.positions:
                if _covers(each, position, fence) and each.fence and each.fence.tail:
                    deletions = repository.manifests.load(listed.id).deletions_in(
                        position.changelog
                    )
                    return Inherited(tail=each.fence.tail, deletions=deletions)
        except (IntegrityError, RefusedError, SnapshotNotFoundError):
            continue
    return None


def _covers(each: Position, position: ChangelogPosition, fence: Fence) -> bool:
    return (
        each.fence is not None
        and each.fence.tail is not None
        and each.position.changelog == position.changelog
        and each.position.applied_offset <= position.applied_offset
        and bool(fence.topic_id)
        and (each.fence.cluster_id, each.fence.topic_id) == (fence.cluster_id, fence.topic_id)
    )


def earlier_fences(
    catalog: Catalog, store: StoreId, position: ChangelogPosition
) -> tuple[Fence, ...]:
    """Return fences of the same partition, the newest first, up to one that dates the deletions.

    That is one whose log ended at or below the resume offset. An entry that cannot be used is
    passed over: it only makes less known.
    """
    fences: list[Fence] = []
    for listed in catalog.list_store(store).snapshots[:_FARTHEST_BACK]:
        try:
            snapshot = catalog.load(listed)
        except (IntegrityError, RefusedError, SnapshotNotFoundError):
            continue
        fences += [
            each.fence
            for each in snapshot.description.positions
            if each.position.changelog == position.changelog and each.fence is not None
        ]
        if fences and _saw_the_end(fences[-1], position):
            break
    return tuple(fences)


def presumed_changelogs(layout: Layout, store: StoreId) -> tuple[ChangelogPartition, ...]:
    """Return the changelog that the application would give a store; none where nobody can say."""
    rules = replay_layout(layout)
    return () if rules is None else rules.presumed_changelogs(store)


def _saw_the_end(fence: Fence, position: ChangelogPosition) -> bool:
    return fence.high_watermark is not None and fence.high_watermark <= position.resume_offset

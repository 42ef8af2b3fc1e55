"""Fence the snapshots of one run: what the log showed before and after each capture."""

from collections.abc import Iterable, Mapping, Sequence

from snapstore.errors import ChangelogGoneError, IntegrityError, RefusedError, SnapshotNotFoundError
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Fence, Position
from snapstore.model.store import ChangelogPosition
from snapstore.operations.fence import take_fence
from snapstore.operations.replay_layout import replay_layout
from snapstore.ports import Changelog, Clock, Layout
from snapstore.repository import Catalog

_FARTHEST_BACK = 20

UNFENCED = (
    "no fence was taken, since Kafka is not configured: a restore will have to be told"
    " --allow-unchecked-changelog"
)


class Fencer:
    """Takes fences; safe for several threads. Raises what Changelog and ``take_fence`` raise."""

    def __init__(self, changelog: Changelog, catalog: Catalog, clock: Clock) -> None:
        self._changelog = changelog
        self._catalog = catalog
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
        store: StoreId,
        positions: Sequence[ChangelogPosition],
        before: Mapping[ChangelogPartition, PartitionState],
    ) -> tuple[Position, ...]:
        """Fence every position, once the files are held still."""
        return tuple(self._fenced(store, each, before.get(each.changelog)) for each in positions)

    def _fenced(
        self, store: StoreId, position: ChangelogPosition, before: PartitionState | None
    ) -> Position:
        seen_end = before is not None and before.high_watermark <= position.resume_offset
        earlier = () if seen_end else earlier_fences(self._catalog, store, position)
        fence = take_fence(
            self._changelog, position, now=self._clock(), before=before, earlier=earlier
        )
        return Position(position=position, fence=fence)


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

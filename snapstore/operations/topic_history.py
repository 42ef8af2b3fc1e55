"""Which topics of one name a repository has known, and of which of them files on a disk are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from snapstore.errors import (
    IntegrityError,
    RefusedError,
    SnapshotNotFoundError,
    TopicRecreatedError,
)
from snapstore.model.identity import ChangelogPartition
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Fence, Position
from snapstore.model.store import StoreLocation
from snapstore.operations.fsck_read import made_at
from snapstore.repository import Catalog

Fences = Mapping[ChangelogPartition, Sequence[Fence]]

_UNUSABLE = (IntegrityError, RefusedError, SnapshotNotFoundError)


def known_fences(catalog: Catalog, snapshots: Iterable[ListedSnapshot]) -> Fences:
    """Return the last fence of each topic that ``snapshots``, all of one store, were taken of.

    Two entries are read where the oldest and the newest by the clock are of the same topics: a
    topic's id never comes back. An entry that cannot be used is passed over.
    """
    by_time = sorted((one for one in snapshots if one.changelogs), key=lambda one: one.captured_at)
    read = {one.id: _fences(catalog, one) for one in (by_time[:1] + by_time[-1:])}
    ends = [{(at, fence.topic_id) for at, fence in each} for each in read.values()]
    if any(each != ends[0] or not each for each in ends):
        read |= {one.id: _fences(catalog, one) for one in by_time if one.id not in read}
    last: dict[ChangelogPartition, dict[str, Fence]] = {}
    for one in by_time:
        for changelog, fence in read.get(one.id, ()):
            last.setdefault(changelog, {})[fence.topic_id] = fence
    return {changelog: tuple(each.values()) for changelog, each in last.items()}


def is_of_old_topic(
    fences: Sequence[Fence], topic_id: str, made: Callable[[], datetime | None]
) -> bool:
    """Whether files are older than a fence of a topic with another id than the present one.

    ``made`` tells the time of the oldest of them; it is asked only where it matters. A store whose
    files are all younger has been built since, from the topic that is there now.
    """
    others = [each for each in fences if each.topic_id and topic_id and each.topic_id != topic_id]
    if not others:
        return False
    oldest = made()
    return any(
        oldest is None or each.observed_at is None or oldest <= each.observed_at for each in others
    )


def require_own_topic(
    catalog: Catalog, location: StoreLocation, positions: Sequence[Position]
) -> None:
    """Raise TopicRecreatedError where the files of a store are older than the topic they name.

    Offsets may fit by chance. What earlier snapshots know of the topic tells it, and a snapshot
    that says otherwise would cover that.
    """
    fenced = [(each.position, each.fence) for each in positions if each.fence is not None]
    if not fenced:
        return
    known = known_fences(catalog, catalog.list_store(location.store).snapshots)
    for position, fence in fenced:
        fences = known.get(position.changelog, ())
        if is_of_old_topic(fences, fence.topic_id, lambda: made_at(location)):
            raise TopicRecreatedError(
                f"{position.changelog} was deleted and created again since the files of "
                f"{location.store} were written (its id is now {fence.topic_id}): offset "
                f"{position.applied_offset} counts records of another topic",
                hint="see what the application would do with them: snapstore fsck",
                changelog=str(position.changelog),
                expected=next(each.topic_id for each in fences if each.topic_id != fence.topic_id),
                found=fence.topic_id,
            )


def _fences(catalog: Catalog, listed: ListedSnapshot) -> list[tuple[ChangelogPartition, Fence]]:
    try:
        positions = catalog.load(listed).description.positions
    except _UNUSABLE:
        return []
    return [(each.position.changelog, each.fence) for each in positions if each.fence is not None]

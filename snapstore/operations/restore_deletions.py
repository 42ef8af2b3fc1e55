"""Delete in staged stores what their changelogs delete after the snapshot.

Compaction may have taken those tombstones away, or do it before the replay gets there.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import structs

from snapstore.errors import NotReplayableError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Noted
from snapstore.model.snapshot import Deletion, Position
from snapstore.model.units import count
from snapstore.operations.replay import writable
from snapstore.operations.replay_layout import deleting_layout
from snapstore.operations.restore_plan import StorePlan, TaskPlan, Wanted
from snapstore.operations.stage import staged_location
from snapstore.operations.work_area import WorkArea
from snapstore.ports import Layout, Listener, StoreBackend


def deletions_of(wanted: Wanted) -> Mapping[ChangelogPartition, Sequence[Deletion]]:
    """Return the deletions that the snapshot notes, and those that its proof has read."""
    found: dict[ChangelogPartition, Sequence[Deletion]] = {}
    read = {plan.changelog: plan.deletions for plan in wanted.resume}
    for each in wanted.snapshot.description.positions:
        changelog = each.position.changelog
        both = (*wanted.manifest.deletions_in(changelog), *read.get(changelog, ()))
        last = {one.key: one.offset for one in sorted(both, key=lambda one: one.offset)}
        if last:
            found[changelog] = [Deletion(key, offset) for key, offset in last.items()]
    return found


def delete_staged(
    plan: TaskPlan,
    area: WorkArea,
    layout: Layout,
    backends: Mapping[str, StoreBackend],
    listener: Listener,
) -> bool:
    """Apply the deletions to every staged store of a task; say whether there were any.

    The files are durable afterwards, and their offsets as before; doing it again changes nothing.
    Raises NotReplayableError where the layout or the backend cannot do it.
    """
    staged = area.staged(plan.task_dir.name)
    done = [_delete(staged, each, layout, backends) for each in plan.stores]
    for store, keys in zip(plan.stores, done, strict=True):
        if keys:
            listener(
                Noted(
                    message=f"{store.store}: {count(keys, 'key')} deleted that the changelog"
                    " deletes after the snapshot"
                )
            )
    return any(done)


def without_unapplied(positions: Sequence[Position], *, applied: bool) -> tuple[Position, ...]:
    """Return positions whose fences tell of no deletions that were not applied."""
    return tuple(positions) if applied else tuple(map(_without_tail, positions))


def _delete(
    staged: Path, store: StorePlan, layout: Layout, backends: Mapping[str, StoreBackend]
) -> int:
    deletions = deletions_of(store.wanted)
    if not deletions:
        return 0
    location = staged_location(staged, store)
    deleting = deleting_layout(layout)
    if deleting is None:
        raise NotReplayableError(
            f"the layout {layout.name} does not tell where keys are in {store.store}",
            hint="let the application rebuild it from the changelog",
            store=str(store.store),
        )
    backend = writable(backends, location.backend)
    with backend.open_writer(location.task_dir, location.root) as writer:
        for each in store.wanted.snapshot.description.positions:
            gone = deletions.get(each.position.changelog, ())
            if gone:
                deleting.delete_keys(writer, location, each.position, gone)
    return sum(map(len, deletions.values()))


def _without_tail(each: Position) -> Position:
    if each.fence is None or each.fence.tail is None or not each.fence.tail.deletions:
        return each
    return structs.replace(each, fence=structs.replace(each.fence, tail=None))

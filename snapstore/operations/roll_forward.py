"""Begin a roll-forward with what lies on the application's disk, running or not.

Every database goes on from its own offset. One that does not say how far it has got is left behind
and filled again from the beginning of the log: its records may be in the application's memory only.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from snapstore.errors import UnknownOffsetError
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import Overrides, plan_rebuild
from snapstore.model.snapshot import Fence
from snapstore.model.store import CapturedFile, ChangelogPosition, StoreLocation
from snapstore.operations.fence import check_fence, take_fence
from snapstore.operations.guarantee import require_committed_now, status_of
from snapstore.operations.hold import held_store
from snapstore.operations.replay import ReplayPorts
from snapstore.operations.replay_layout import refuse_repetition, require_replay_layout
from snapstore.operations.replay_plan import PlannedReplay
from snapstore.operations.snapshot_fence import earlier_fences
from snapstore.operations.stage_files import os_errors
from snapstore.operations.work_folder import WorkFolder
from snapstore.repository import Catalog

_CHUNK_BYTES = 1 << 20


class HotBase(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were copied, and the replays that bring all of them to the end of the log."""

    planned: tuple[PlannedReplay, ...]
    left_behind: tuple[str, ...]


def take_hot_base(
    location: StoreLocation,
    changelog: ChangelogPartition,
    before: PartitionState,
    folder: WorkFolder,
    ports: ReplayPorts,
    catalog: Catalog,
) -> HotBase:
    """Copy the store into the work folder, and plan the replay of each of its databases.

    ``before`` is the partition as it was before this call. Raises UnknownOffsetError where no
    database says how far it has got, ExactlyOnceHotError, RefusedError for a versioned store that
    was running, what capturing raises, and the refusals of ``take_fence`` and ``check_fence`` for
    each of the offsets.
    """
    layout = require_replay_layout(ports.layout)
    backend = ports.backends[location.backend]
    with held_store(location, ports.layout, backend, ports.clock) as held:
        view = held.capture.view
        if held.running:
            refuse_repetition(ports.layout, location, view, before)
        require_committed_now(
            location.store,
            status_of(ports.layout, view),
            ports.layout,
            ports.changelog,
            [changelog],
            ports.clock,
        )
        offsets = dict(layout.offsets_by_database(location, view, changelog))
        if not offsets:
            positions = ports.layout.positions(
                location, held.noted_offsets, view, running=held.running
            )
            applied = {each.changelog: each.applied_offset for each in positions}
            offsets = dict.fromkeys(view.databases, applied.get(changelog))
        known = {name: at for name, at in offsets.items() if at is not None and at >= 0}
        if not known:
            raise UnknownOffsetError(
                f"nothing of {location.store} on the disk says which offset it holds",
                hint="take the snapshot from the changelog",
                store=str(location.store),
            )
        planned = _plan(location, changelog, before, set(known.values()), ports, catalog)
        left_behind = tuple(sorted(offsets.keys() - known.keys()))
        if left_behind:
            # Before anything that goes on from a later offset: the log is read in two parts.
            planned = (_refill(before, planned), *planned)
        _copy(held.capture.files, left_behind, folder.task_dir)
    return HotBase(planned=planned, left_behind=left_behind)


def _plan(
    location: StoreLocation,
    changelog: ChangelogPartition,
    before: PartitionState,
    offsets: set[int],
    ports: ReplayPorts,
    catalog: Catalog,
) -> tuple[PlannedReplay, ...]:
    """Fence every offset as a snapshot there would be, and return one replay for all of them.

    It begins at the least. The earliest deadline counts, and a tail without a gap is asked for
    where any of the offsets needs one.
    """
    plans = []
    for applied_offset in sorted(offsets):
        position = ChangelogPosition(changelog, applied_offset)
        fence: Fence = take_fence(
            ports.changelog,
            position,
            now=ports.clock(),
            before=before,
            earlier=earlier_fences(catalog, location.store, position),
        )
        plans.append(
            check_fence(ports.changelog, position, fence, now=ports.clock(), overrides=Overrides())
        )
    least = plans[0]
    deadlines = [plan.deadline for plan in plans if plan.deadline is not None]
    combined = msgspec.structs.replace(
        least,
        deadline=min(deadlines, default=None),
        gap_free_required=any(plan.gap_free_required for plan in plans),
    )
    position = ChangelogPosition(changelog, min(offsets))
    return (PlannedReplay(position=position, plan=combined, stop=combined.stop),)


def _refill(before: PartitionState, planned: Sequence[PlannedReplay]) -> PlannedReplay:
    """Plan to read the log from its beginning, up to where the other databases go on."""
    rebuild = plan_rebuild(before)
    stop = max(rebuild.start, planned[0].plan.start)
    return PlannedReplay(position=planned[0].position, plan=rebuild, stop=stop)


def _copy(files: Sequence[CapturedFile], left_behind: Sequence[str], task_dir: Path) -> None:
    """Copy captured files, but those of the databases that are left behind."""
    with os_errors(task_dir):
        if task_dir.exists():
            shutil.rmtree(task_dir)
        for file in files:
            if any(file.name.startswith(f"{database}/") for database in left_behind):
                continue
            path = task_dir / file.name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path.open("wb") as target:
                for position in range(0, file.size, _CHUNK_BYTES):
                    length = min(_CHUNK_BYTES, file.size - position)
                    target.write(file.source.pread(length, position))

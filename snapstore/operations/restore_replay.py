"""Replay what was restored, while it still lies in the staging folder.

The task gets into place only once it holds the records that were asked for. A run that is killed
meanwhile leaves its staged databases with data and offset of the same record; a marker beside them
says which snapshots they come from, and the next run goes on from there.
"""

from collections.abc import Sequence

import msgspec

from snapstore.errors import SnapstoreError, UnavailableError
from snapstore.model.guarantee import FoundGuarantee, of_snapshot, require_committed
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Noted
from snapstore.model.snapshot import Position
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.operations.guarantee import configured_guarantee, status_of
from snapstore.operations.replay import (
    ReplayedPartition,
    ReplayPorts,
    note_reached,
    plan_replays,
    replay_store,
    require_replayable,
)
from snapstore.operations.replay_layout import require_replay_layout
from snapstore.operations.replay_marker import clear_marker, has_marker, set_marker
from snapstore.operations.replay_plan import PlannedReplay, ReplayGoal, held_to, narrowed
from snapstore.operations.restore_plan import StorePlan, TaskPlan, Wanted
from snapstore.operations.stage import staged_location
from snapstore.operations.stage_files import FileWriter
from snapstore.operations.work_area import WorkArea


class ReplayedStore(msgspec.Struct, frozen=True, kw_only=True):
    """What was replayed into one store."""

    store: str
    partitions: tuple[ReplayedPartition, ...]


class StagedReplay:
    """Brings the stores of staged tasks forward: up to a goal, or only those that need it."""

    def __init__(self, goal: ReplayGoal | None, ports: ReplayPorts) -> None:
        self._all = goal is not None
        self._goal = goal or ReplayGoal()
        self._ports = ports

    def concerns(self, wanted: Wanted) -> bool:
        """Whether a store is replayed."""
        return bool(wanted.snapshot.description.positions) and (self._all or needs_replay(wanted))

    def require_possible(self, wanted: Wanted) -> None:
        """Raise NotReplayableError, before anything is written, where that is known by then."""
        if self.concerns(wanted):
            require_replayable(wanted.snapshot.description, self._ports)

    def can_go_on(self, plan: TaskPlan, area: WorkArea) -> bool:
        """Whether staging holds what an interrupted replay of the same snapshots has left.

        Only where the databases keep their offsets themselves, so that nothing is applied twice,
        and where no other store of the task is involved, which may have moved on since.
        """
        if plan.keep or not has_marker(area, plan.task_dir.name, _mark(plan)):
            return False
        try:
            return all(self._keeps_offsets(area, plan, store) for store in plan.stores)
        except SnapstoreError as error:
            self._ports.listener(
                Noted(message=f"the interrupted replay is begun anew: {error.message}")
            )
            return False

    def forget(self, plan: TaskPlan, area: WorkArea) -> None:
        """Staging is about to be built anew, or was put into place."""
        clear_marker(area, plan.task_dir.name)

    def run(self, plan: TaskPlan, area: WorkArea, files: FileWriter) -> tuple[ReplayedStore, ...]:
        """Replay every store of a staged task; the next run goes on after what trying again cures.

        Any other error clears the marker.
        """
        stores = [store for store in plan.stores if self.concerns(store.wanted)]
        if not stores:
            return ()
        set_marker(area, plan.task_dir.name, _mark(plan), files)
        try:
            return tuple(self._run_store(plan, store, area, files) for store in stores)
        except UnavailableError:
            raise
        except SnapstoreError:
            self.forget(plan, area)
            raise

    def _run_store(
        self, plan: TaskPlan, store: StorePlan, area: WorkArea, files: FileWriter
    ) -> ReplayedStore:
        description = store.wanted.snapshot.description
        location = staged_location(area.staged(plan.task_dir.name), store)
        planned = [
            from_own_offsets(
                location,
                each,
                self._ports,
                of_snapshot(description, configured_guarantee(self._ports.layout)),
            )
            for each in held_to(
                plan_replays(description.positions, self._ports, self._goal), store.wanted.resume
            )
        ]
        replayed = replay_store(location, planned, self._ports) if planned else ()
        reached = reached_positions(description.positions, replayed)
        note_reached(
            location,
            msgspec.structs.replace(description, positions=reached),
            self._ports,
            files,
        )
        return ReplayedStore(store=str(description.store), partitions=replayed)

    def _keeps_offsets(self, area: WorkArea, plan: TaskPlan, store: StorePlan) -> bool:
        location = staged_location(area.staged(plan.task_dir.name), store)
        layout = require_replay_layout(self._ports.layout)
        backend = self._ports.backends[location.backend]
        with backend.open_view(location.task_dir, location.root) as view:
            return all(
                layout.offsets_by_database(location, view, each.position.changelog)
                for each in store.wanted.snapshot.description.positions
            )


def needs_replay(wanted: Wanted) -> bool:
    """Whether only snapstore itself may replay it: the tail must be seen to have no gap."""
    return any(plan.gap_free_required for plan in wanted.resume)


def reached_positions(
    positions: Sequence[Position], replayed: Sequence[ReplayedPartition]
) -> tuple[Position, ...]:
    """Return the positions after a replay."""
    applied = {each.changelog: each.applied_offset for each in replayed}
    return tuple(
        Position(
            position=ChangelogPosition(
                each.position.changelog,
                max(
                    each.position.applied_offset,
                    applied.get(each.position.changelog, each.position.applied_offset),
                ),
            )
        )
        for each in positions
    )


def from_own_offsets(
    location: StoreLocation,
    planned: PlannedReplay,
    ports: ReplayPorts,
    found: FoundGuarantee | None = None,
) -> PlannedReplay:
    """Begin where the databases themselves have got to, if that is later.

    ``found`` is the guarantee that they were written under, None where that was seen to. Raises
    ExactlyOnceHotError for files that may hold writes of a transaction that aborts.
    """
    changelog = planned.plan.changelog
    applied = own_offset(location, changelog, ports, found)
    if applied is None:
        return planned
    return narrowed(planned, ChangelogPosition(changelog, min(applied, planned.stop - 1)))


def own_offset(
    location: StoreLocation,
    changelog: ChangelogPartition,
    ports: ReplayPorts,
    found: FoundGuarantee | None = None,
) -> int | None:
    """Return the least offset that the databases note; None unless each of them does.

    ``found`` and what is raised: see ``from_own_offsets``.
    """
    layout = require_replay_layout(ports.layout)
    with ports.backends[location.backend].open_view(location.task_dir, location.root) as view:
        if found is not None:
            require_committed(location.store, status_of(ports.layout, view), found)
        offsets = layout.offsets_by_database(location, view, changelog).values()
    known = [applied for applied in offsets if applied is not None and applied >= 0]
    return min(known) if known and len(known) == len(offsets) else None


def _mark(plan: TaskPlan) -> bytes:
    return msgspec.json.encode(
        {str(store.store): store.wanted.snapshot.id for store in plan.stores}, order="sorted"
    )

"""Replay into the stores of a state directory whose application is stopped.

Each task is copied beside itself, tables by links; the copy is brought forward and put into place
as a whole. Whatever goes wrong, the directory stays as it was.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from operator import itemgetter
from pathlib import Path

import msgspec

from snapstore.errors import (
    PartialFailureError,
    SnapstoreError,
    StoreNotFoundError,
    UnavailableError,
)
from snapstore.model.folder import Folder
from snapstore.model.report import Noted, StoreFinished
from snapstore.model.snapshot import Description, Position
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.units import count
from snapstore.operations.guarantee import require_committed_now, status_of
from snapstore.operations.lineage import Lineage, with_accepted
from snapstore.operations.replay import (
    ReplayedPartition,
    ReplayPorts,
    describe_location,
    note_reached,
    plan_replays,
    replay_store,
    require_replayable,
)
from snapstore.operations.replay_marker import clear_marker, has_marker, set_marker
from snapstore.operations.replay_plan import PlannedReplay, ReplayGoal, narrowed, require_one
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.restore_plan import TaskPlan, plan_task
from snapstore.operations.restore_replay import from_own_offsets, reached_positions
from snapstore.operations.restore_target import look_at_task
from snapstore.operations.snapshot_plan import Selection, plan_snapshot
from snapstore.operations.stage import settle, stage_copy
from snapstore.operations.stage_files import FileWriter, Permissions, os_errors, told_of_owner
from snapstore.operations.swap import clear_work, cut_short_below, recover, swap_in
from snapstore.operations.work_area import WorkArea


class ReplayedTaskStore(msgspec.Struct, frozen=True, kw_only=True):
    """What was applied to one store. ``deadline``: see ``ReplayedPartition``."""

    store: str
    task_dir: Path
    partitions: tuple[ReplayedPartition, ...]

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def deadline(self) -> datetime | None:
        return min((each.deadline for each in self.partitions if each.deadline), default=None)


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """All stores of one replay; ``notes`` say what was not looked at."""

    stores: tuple[ReplayedTaskStore, ...]
    notes: tuple[str, ...] = ()


class _Store(msgspec.Struct, frozen=True, kw_only=True):
    location: StoreLocation
    description: Description
    planned: tuple[PlannedReplay, ...]


def replay_tasks(
    state_dir: Path,
    application: str | None,
    selection: Selection,
    goal: ReplayGoal,
    ports: ReplayPorts,
    lineage: Lineage,
    permissions: Permissions,
) -> ReplayReport:
    """Bring the selected stores below a state directory forward, one task after the other.

    Before anything is written, raises StoreNotFoundError, StoreInUseError, UnknownOffsetError,
    NotReplayableError, CaptureError for a store that cannot be read, and what ``check_fence``
    raises: UncheckedChangelogError for a directory of which no note tells where it came from. Later
    the first error is raised; tasks before it are done.
    """
    with _told_of_what_was_cut_short(state_dir):
        chosen = plan_snapshot(ports.layout.discover(state_dir, application), selection)
    if chosen.unread:
        raise chosen.unread[0].error
    require_one(goal, [location.store for location in chosen.locations])
    with ExitStack() as held:
        areas = _hold(state_dir, chosen.locations, ports, permissions, held)
        tasks: dict[Path, list[_Store]] = {}
        for location in chosen.locations:
            found = _plan(location, goal, ports, lineage)
            tasks.setdefault(location.task_dir, []).append(found)
        replayed: list[ReplayedTaskStore] = []
        for task_dir, stores in tasks.items():
            try:
                area = areas[task_dir.parent]
                replayed += _replay_task(task_dir, stores, area, ports, lineage, permissions)
            except SnapstoreError as error:
                if replayed:
                    raise PartialFailureError(
                        f"{task_dir} could not be replayed: {error.message}",
                        hint=error.hint,
                        done=[each.store for each in replayed],
                    ) from error
                raise
        for area in areas.values():
            clear_work(area)
        notes = [
            *chosen.notes,
            *(note for task_dir in tasks for note in lineage.accepted(task_dir)),
        ]
    return ReplayReport(stores=tuple(replayed), notes=tuple(notes))


@contextmanager
def _told_of_what_was_cut_short(state_dir: Path) -> Iterator[None]:
    """Say where a task is that is not there because a swap of its directory was cut short."""
    try:
        yield
    except StoreNotFoundError as error:
        aside = cut_short_below(state_dir)
        if aside:
            error.hint = (
                f"a run that was cut short has left {', '.join(map(str, aside))} aside: "
                "fsck --repair puts it back"
            )
        raise


def _hold(
    state_dir: Path,
    locations: Sequence[StoreLocation],
    ports: ReplayPorts,
    permissions: Permissions,
    held: ExitStack,
) -> Mapping[Path, WorkArea]:
    """Keep the applications from starting, and others from the same work folders."""
    applications = {location.store.application: location for location in reversed(locations)}
    for location in applications.values():
        held.enter_context(
            ports.layout.hold(state_dir, describe_location(location, (), ports.clock()))
        )
    if told := told_of_owner(permissions):
        ports.listener(Noted(message=told))
    areas = {}
    for parent in sorted({location.task_dir.parent for location in locations}):
        with os_errors(parent, "read"):
            tasks = held.enter_context(Folder.reach(state_dir, parent))
        writer = _writer(tasks, None, ports, permissions)
        areas[parent] = held.enter_context(work_lock(tasks, writer))
        for note in recover(areas[parent], reached=ports.reached):
            ports.listener(Noted(message=note))
    return areas


def _plan(
    location: StoreLocation, goal: ReplayGoal, ports: ReplayPorts, lineage: Lineage
) -> _Store:
    noted = ports.layout.noted_offsets(location)
    with ports.backends[location.backend].open_view(location.task_dir, location.root) as view:
        positions = ports.layout.positions(location, noted, view, running=False)
        require_committed_now(
            location.store,
            status_of(ports.layout, view),
            ports.layout,
            ports.changelog,
            [position.changelog for position in positions],
            ports.clock,
        )
    known = lineage.recall(location.task_dir).get(location.store.store, ())
    description = describe_location(
        location, [Position(position=position) for position in positions], ports.clock()
    )
    if positions:
        require_replayable(description, ports)
    planned = [_plan_position(position, known, goal, ports) for position in positions]
    return _Store(location=location, description=description, planned=tuple(planned))


def _plan_position(
    position: ChangelogPosition, known: Sequence[Position], goal: ReplayGoal, ports: ReplayPorts
) -> PlannedReplay:
    """Check the snapshot that the store goes back to, and go on from where the store is now."""
    origin = Position(position=position)
    for each in known:
        same = each.position.changelog == position.changelog
        if same and each.position.applied_offset <= position.applied_offset:
            origin = each
    (planned,) = plan_replays([origin], ports, goal)
    return narrowed(planned, position)


def _replay_task(
    task_dir: Path,
    stores: Sequence[_Store],
    area: WorkArea,
    ports: ReplayPorts,
    lineage: Lineage,
    permissions: Permissions,
) -> list[ReplayedTaskStore]:
    task = task_dir.name
    files = _writer(area.tasks, task, ports, permissions)
    mark = _mark(area, task, stores)
    staged = area.staged(task)
    if has_marker(area, task, mark) and staged.is_dir():
        ports.listener(Noted(message=f"{task_dir}: going on with the replay"))
    else:
        clear_marker(area, task)
        stage_copy(_copy_plan(task_dir, area), area, files)
        set_marker(area, task, mark, files)
    ports.reached("task copied")
    try:
        done = [_replay_store(task_dir, staged, store, ports, files) for store in stores]
    except UnavailableError:
        raise
    except SnapstoreError:
        # What was left there may be the reason: the next run begins with a new copy.
        clear_marker(area, task)
        clear_work(area)
        raise
    settle(staged, files)
    known = _with_accepted(lineage.recall(task_dir), stores)
    swap_in(
        area,
        task,
        writer=files,
        now=ports.clock(),
        keep_replaced=False,
        reached=ports.reached,
    )
    clear_marker(area, task)
    _note_lineage(task_dir, known, lineage, ports)
    for store, each in zip(stores, done, strict=True):
        outcome = f"replayed {count(each.records, 'record')}"
        ports.listener(StoreFinished(store=store.location.store, outcome=outcome, ok=True))
    return done


def _replay_store(
    task_dir: Path, staged: Path, store: _Store, ports: ReplayPorts, files: FileWriter
) -> ReplayedTaskStore:
    location = msgspec.structs.replace(store.location, task_dir=staged)
    planned = [from_own_offsets(location, each, ports) for each in store.planned]
    replayed = replay_store(location, planned, ports) if planned else ()
    if replayed:
        reached = reached_positions(store.description.positions, replayed)
        description = msgspec.structs.replace(store.description, positions=reached)
        note_reached(location, description, ports, files)
    return ReplayedTaskStore(
        store=str(location.store), task_dir=task_dir, partitions=tuple(replayed)
    )


def _with_accepted(
    known: Mapping[str, tuple[Position, ...]], stores: Sequence[_Store]
) -> dict[str, tuple[Position, ...]]:
    """Add what this replay had to accept; a store of unknown origin has its own position noted."""
    noted = dict(known)
    for store in stores:
        dangers = [danger for each in store.planned for danger in each.plan.accepted]
        name = store.location.store.store
        if dangers:
            noted[name] = with_accepted(known.get(name, store.description.positions), dangers)
    return noted


def _note_lineage(
    task_dir: Path,
    known: Mapping[str, tuple[Position, ...]],
    lineage: Lineage,
    ports: ReplayPorts,
) -> None:
    try:
        lineage.moved(task_dir, known)
    except OSError as error:
        ports.listener(
            Noted(message=f"where {task_dir} came from could not be noted: {error.strerror}")
        )


def _copy_plan(task_dir: Path, area: WorkArea) -> TaskPlan:
    return plan_task(look_at_task(task_dir, (), (), area), (), replace=True)


def _mark(area: WorkArea, task: str, stores: Sequence[_Store]) -> bytes:
    """Return what tells this directory, and what is to be replayed into it, from any other."""
    digest = hashlib.sha256()
    with os_errors(area.tasks.path / task, "read"):
        for name, status in sorted(area.tasks.walk(task), key=itemgetter(0)):
            facts = (name, status.st_ino, status.st_size, status.st_mtime_ns)
            digest.update(repr(facts).encode())
    for store in stores:
        digest.update(str(store.location.store).encode())
    return digest.hexdigest().encode()


def _writer(
    tasks: Folder, task: str | None, ports: ReplayPorts, permissions: Permissions
) -> FileWriter:
    return FileWriter.within(
        tasks, permissions, lambda text: ports.listener(Noted(message=text)), replacing=task
    )

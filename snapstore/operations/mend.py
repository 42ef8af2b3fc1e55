"""Make a state directory safe to start with, one task directory after the other.

Each mended task is built beside the one in use and put into place as a whole, with the journal of a
restore: a crash leaves the old one, the new one, or none, which is replayed whole.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from snapstore.errors import IntegrityError, UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.manifest_rules import lies_in
from snapstore.model.report import Noted
from snapstore.model.state_facts import TaskFacts
from snapstore.operations.fsck import (
    FsckOptions,
    FsckPorts,
    Locks,
    examine,
    fsck,
    look_at_locks,
)
from snapstore.operations.mend_plan import MendPlan, TaskMend, plan_mend
from snapstore.operations.quarantine import copy_over, keep_in_quarantine
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.restore_target import check_writable
from snapstore.operations.stage_files import FileWriter, Permissions, os_errors, sync_tree
from snapstore.operations.swap import Reached, cut_short, recover, swap_in, tidy_work
from snapstore.operations.work_area import STAGING, WorkArea
from snapstore.ports import FamilyNote, FileNote, Note, StartInspector, StoreBackend

_ROUNDS = 3


class MendedTask(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one task; ``quarantine`` is where its files were set aside, if any were."""

    plan: TaskMend
    quarantine: Path | None


class MendReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that was done; ``plan`` is what was meant to be done, ``recovered`` are sentences."""

    plan: MendPlan
    tasks: tuple[MendedTask, ...] = ()
    recovered: tuple[str, ...] = ()


def mend(
    state_dir: Path,
    ports: FsckPorts,
    options: FsckOptions,
    *,
    reached: Reached = lambda _: None,
) -> MendReport:
    """Mend what ``plan_mend`` plans, with the applications kept from starting.

    A directory that needs nothing is not touched. A run that was cut short is finished or undone
    first. Raises StoreInUseError when an application runs, RunInProgressError, NoSpaceError,
    ConfigError when the directory cannot be written, and IntegrityError when a mended task does not
    say what it should; the task at hand then is as it was.
    """
    report = fsck(state_dir, ports, options)
    plan = plan_mend(report)
    directories = ports.inspector.application_dirs(state_dir, options.application)
    unfinished = interrupted(ports.inspector, state_dir, options.application)
    names = sorted({task.facts.application for task in plan.tasks} | set(unfinished))
    done: list[MendedTask] = []
    recovered: list[str] = []
    for name in names:
        tasks = [task.facts for task in report.tasks if task.facts.application == name]
        locks = Locks(untold=look_at_locks(tasks, ports.inspector).untold)
        locations = [store.location for task in tasks for store in task.stores]
        parents = {task.task_dir.parent for task in tasks} | set(unfinished.get(name, ()))
        for folder in (directories[name], *sorted(parents)):
            check_writable(folder)
        with ExitStack() as held:
            held.enter_context(ports.inspector.keep_stopped(directories[name], locations))
            areas = {}
            for parent in sorted(parents):
                with os_errors(parent, "read"):
                    tasks_folder = held.enter_context(Folder.reach(state_dir, parent))
                writer = _writer(tasks_folder, None, ports)
                areas[parent] = held.enter_context(work_lock(tasks_folder, writer))
            for area in areas.values():
                recovered += recover(area, reached=reached)
            reached("held")
            own = msgspec.structs.replace(options, application=name)
            for now in _plans(state_dir, ports, own, locks):
                done += [
                    _mend_task(task, areas[task.facts.task_dir.parent], ports, reached)
                    for task in now.tasks
                ]
            for area in areas.values():
                tidy_work(area)
    return MendReport(plan=plan, tasks=tuple(done), recovered=tuple(recovered))


def _plans(
    state_dir: Path, ports: FsckPorts, options: FsckOptions, locks: Locks
) -> Iterator[MendPlan]:
    """Yield what to do, and again once it is done: a file that was in the way hides what else is
    wrong with its store."""
    for _ in range(_ROUNDS):
        plan = plan_mend(examine(state_dir, ports, options, locks))
        yield plan
        actions = {mend.action for task in plan.tasks for mend in task.stores}
        if "set_file_aside" not in actions:
            return


def interrupted(
    inspector: StartInspector, state_dir: Path, application: str | None
) -> Mapping[str, Sequence[Path]]:
    """Return the folders of tasks in which a swap was cut short, by application."""
    directories = inspector.application_dirs(state_dir, application)
    return {
        name: folders
        for name, directory in directories.items()
        if (folders := _interrupted(state_dir, directory))
    }


def _interrupted(state_dir: Path, application_dir: Path) -> list[Path]:
    """Return the folders of tasks, of named topologies too, in which a swap was cut short."""
    try:
        names = sorted(os.listdir(application_dir))  # noqa: PTH208 - names only
    except FileNotFoundError:
        return []
    topologies = (name for name in names if name.startswith("__") and name.endswith("__"))
    parents = [application_dir, *(application_dir / name for name in topologies)]
    return [parent for parent in parents if cut_short(state_dir, parent)]


def _mend_task(task: TaskMend, area: WorkArea, ports: FsckPorts, reached: Reached) -> MendedTask:
    """Build the mended task directory, check it, and put it into place."""
    name = task.facts.task_dir.name
    writer = _writer(area.tasks, name, ports)
    staged = area.staged(name)
    gone = [path for mend in task.stores for path in mend.paths]
    with os_errors(task.facts.task_dir):
        found = _entries(area.tasks, name)
        area.own.remove_tree(f"{STAGING}/{name}")
        writer.make_folder(staged)
        reached("staging made")
        for inner, mode in found:
            if not any(lies_in(inner, path) for path in gone):
                copy_over(area.tasks, f"{name}/{inner}", staged / inner, mode, writer)
    reached("files taken over")
    for note in _notes(task, ports):
        _carry_out(note, staged, task.facts, area, ports.backends, writer)
        reached("note written")
    _check(staged, task, ports)
    with os_errors(staged):
        os.utime(staged)
    sync_tree(staged)
    reached("staging durable")
    now = ports.clock()
    reasons = [f"{mend.store}: {mend.reason}" for mend in task.stores if mend.paths]
    quarantine = None
    if gone:
        quarantine = keep_in_quarantine(area, name, gone, reasons, now, writer)
    reached("set aside")
    swap_in(area, name, writer=writer, now=now, keep_replaced=False, reached=reached)
    return MendedTask(plan=task, quarantine=quarantine)


def _entries(tasks: Folder, task: str) -> list[tuple[str, int]]:
    """Return all that is in a task, with the modes.

    A link would be replaced by what it points to, or lead elsewhere from the staged place.
    """
    found = [(name, status.st_mode) for name, status in tasks.walk(task)]
    links = [tasks.path / task / name for name, mode in found if stat.S_ISLNK(mode)]
    if links:
        raise UnsafePathError(
            f"{links[0]} is a symbolic link, and a task with links in it is not mended",
            hint="replace the link by what it points to while the application is stopped",
            path=str(links[0]),
        )
    return found


def _notes(task: TaskMend, ports: FsckPorts) -> tuple[Note, ...]:
    """Plan the notes; an offset file that is set aside as a whole needs none."""
    least = {mend.store: mend.least for mend in task.stores if mend.action == "note_least"}
    dropped = [mend.store for mend in task.stores if mend.action == "set_aside"]
    lines = [line for mend in task.stores for line in mend.lines]
    return ports.inspector.mend_notes(task.facts, least, [*dropped, *lines])


def _carry_out(
    note: Note,
    staged: Path,
    task: TaskFacts,
    area: WorkArea,
    backends: Mapping[str, StoreBackend],
    writer: FileWriter,
) -> None:
    match note:
        case FileNote(name=name, content=None):
            with os_errors(staged / name):
                (staged / name).unlink(missing_ok=True)
        case FileNote(name=name, content=bytes() as content):
            with area.tasks.below(task.task_dir.name) as folder:
                before = folder.look(name)
            writer.write(staged / name, content, before.st_mode if before else 0o640)
        case FamilyNote(database=database, family=family, entries=entries):
            (backend,) = {
                store.location.backend
                for store in task.stores
                if any(each.name == database for each in store.databases)
            }
            backends[backend].write_entries(staged / database, family, entries)
            for path in (staged / database).iterdir():
                status = path.stat()
                if status.st_nlink == 1:
                    writer.adopt(path, status.st_mode)


def _check(staged: Path, task: TaskMend, ports: FsckPorts) -> None:
    """Raise IntegrityError unless every database of the staged stores notes the least offset."""
    stores = {store.store: store for store in task.facts.stores}
    for mend in task.stores:
        if mend.action != "note_least":
            continue
        store = stores[mend.store]
        backend = ports.backends[store.location.backend]
        with backend.open_view(staged, store.location.root) as view:
            found = ports.inspector.read_databases(store, [view])
        for changelog, applied in mend.least.items():
            noted = found.noted(changelog)
            if (noted.applied_offset, noted.greatest) != (applied, applied):
                raise IntegrityError(
                    f"the mended databases of {mend.store} do not note offset {applied}",
                    hint="the task was left as it was",
                    store=str(mend.store),
                    least=noted.applied_offset,
                    greatest=noted.greatest,
                )


def _writer(tasks: Folder, task: str | None, ports: FsckPorts) -> FileWriter:
    """Make files as they are in the task: with their modes, and the owner of its directory."""
    status = (tasks.look(task) if task else None) or tasks.status()
    permissions = Permissions(file_mode=0o777, dir_mode=stat.S_IMODE(status.st_mode))
    return FileWriter.within(
        tasks, permissions, lambda text: ports.listener(Noted(message=text)), replacing=task
    )

"""Find the stores below a state directory, by reading only."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from snapstore.errors import CaptureError, StoreNotFoundError
from snapstore.layouts.folders import is_folder, list_dir, unreadable
from snapstore.layouts.kafka_streams.names import (
    GLOBAL,
    LOCK,
    LOST_AND_FOUND,
    PROCESS_METADATA,
    is_named_topology,
    is_task,
)
from snapstore.layouts.kafka_streams.tasks import located, read_task
from snapstore.model.identity import StoreId, natural_order
from snapstore.model.store import StoreLocation
from snapstore.model.unread import Unread
from snapstore.ports import Discovery


def discover(state_dir: Path, application: str | None, layout: str) -> Discovery:
    """Return the stores of one application, or of all, in the order of their tasks.

    ``state_dir`` is a `state.dir` or the directory of an application in it; links are followed.
    What cannot be read stops nothing else. Raises StoreNotFoundError when the directory or the
    application is not there, CaptureError when it is that which cannot be read.
    """
    found = Sight(applications_in(state_dir, application), unread_in(state_dir, application))
    locations: list[StoreLocation] = []
    notes = [*found.notes]
    for name, task, task_dir in found.tasks:
        try:
            content = read_task(task_dir, name, task)
        except CaptureError as error:
            found.miss(StoreId(name, task, ""), task_dir, error)
            continue
        notes += content.notes
        found.unread += content.unread
        for store in content.stores:
            id_ = StoreId(name, task, store.name)
            try:
                locations.append(located(store, task_dir, id_, layout))
            except CaptureError as error:
                found.miss(id_, task_dir / store.root, error)
    if not locations and not found.unread:
        notes.append(f"no store has files below {state_dir}")
    return Discovery(
        locations=tuple(sorted(locations, key=lambda one: one.store.order)),
        notes=tuple(notes),
        unread=tuple(sorted(found.unread, key=lambda one: one.store.order)),
    )


class Sight:
    """The tasks of some applications, and what of all this could not be looked at."""

    def __init__(self, applications: Mapping[str, Path], unread: Sequence[Unread]) -> None:
        self.unread = [*unread]
        self.tasks: list[tuple[str, str, Path]] = []
        self.notes: list[str] = []
        for name, directory in applications.items():
            try:
                self.notes += strange_folders(directory)
                self.tasks += ((name, task, path) for task, path in tasks_of(directory))
                for task, path in _no_folders(directory):
                    self.miss(StoreId(name, task, ""), path, _no_folder(path))
            except CaptureError as error:
                self.miss(StoreId(name, "", ""), directory, error)

    def miss(self, store: StoreId, path: Path, error: CaptureError) -> None:
        self.unread.append(Unread(store=store, path=path, error=error))


def _resolved(state_dir: Path) -> Path:
    try:
        return state_dir.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise StoreNotFoundError(
            f"the state directory {state_dir} is not there", path=str(state_dir)
        ) from exc


def applications_in(state_dir: Path, application: str | None) -> dict[str, Path]:
    """Return the directories of one application, or of all, by name; links are followed.

    One of all that cannot be read is left out: see ``unread_in``. Raises StoreNotFoundError when
    the directory or the application is not there, CaptureError when it cannot be read.
    """
    try:
        return _applications(state_dir, application)
    except OSError as exc:
        raise unreadable(Path(exc.filename or state_dir), exc) from exc


def unread_in(state_dir: Path, application: str | None) -> list[Unread]:
    """Return the folders beside applications that cannot be read, and may be one."""
    if application is not None or is_application(state_dir.resolve()):
        return []
    unread = []
    for name, path in _folders(state_dir.resolve()):
        try:
            is_application(path)
        except CaptureError as error:
            unread.append(Unread(store=StoreId(name, "", ""), path=path, error=error))
    return unread


def _applications(state_dir: Path, application: str | None) -> dict[str, Path]:
    root = _resolved(state_dir)
    if application is not None and _is_plain_name(application) and (root / application).is_dir():
        return {application: root / application}
    if is_application(root):
        name = state_dir.name if state_dir.name not in ("", "..") else root.name
        if application in (None, name, root.name):
            return {application or name: root}
    elif application is None:
        return {name: path for name, path in _folders(root) if _is_readable_application(path)}
    raise StoreNotFoundError(
        f"there is no application {application} in {state_dir}",
        hint="give the state.dir of the application, or its own directory in there",
        application=application,
        path=str(state_dir),
    )


def is_application(directory: Path) -> bool:
    """Whether a folder looks like that of an application: a task, or the files beside tasks."""
    return any(_is_sign(entry) for entry in list_dir(directory))


def _is_readable_application(directory: Path) -> bool:
    try:
        return is_application(directory)
    except CaptureError:
        return False


def tasks_of(application_dir: Path) -> list[tuple[str, Path]]:
    """Return the task directories of an application with their names, in natural order."""
    tasks = [
        (name, path) for name, path in _folders(application_dir) if is_task(name) or name == GLOBAL
    ]
    for topology, path in _folders(application_dir):
        if is_named_topology(topology):
            tasks += (
                (f"{topology}/{name}", inner) for name, inner in _folders(path) if is_task(name)
            )
    return sorted(tasks, key=lambda task: natural_order(task[0]))


def strange_folders(application_dir: Path) -> list[str]:
    """Say which folders beside the tasks of an application are none, and so are left out."""
    topologies = [each for each in _folders(application_dir) if is_named_topology(each[0])]
    strange = [
        path
        for name, path in _folders(application_dir)
        if not (is_task(name) or name == GLOBAL or is_named_topology(name))
    ]
    for _, topology in topologies:
        strange += (path for name, path in _folders(topology) if not is_task(name))
    return [f"{path}: no task has such a name: left out" for path in sorted(strange)]


def _no_folders(application_dir: Path) -> Iterator[tuple[str, Path]]:
    """Yield what has the name of a task and is no folder: a link to a disk that is not mounted."""
    for entry in list_dir(application_dir):
        if (is_task(entry.name) or entry.name == GLOBAL) and not is_folder(entry):
            yield entry.name, application_dir / entry.name


def _no_folder(path: Path) -> CaptureError:
    return CaptureError(
        f"{path} is no folder, and no link to one: the application cannot start the task",
        hint="mount what the link points to, or remove what has the name",
        path=str(path),
    )


def _is_plain_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _is_sign(entry: os.DirEntry[str]) -> bool:
    if entry.name in (LOCK, PROCESS_METADATA):
        return True
    telling = is_task(entry.name) or entry.name == GLOBAL or is_named_topology(entry.name)
    return telling and is_folder(entry)


def _folders(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the folders in which an application may keep something."""
    for entry in list_dir(path):
        hidden = entry.name.startswith(".") or entry.name == LOST_AND_FOUND
        if not hidden and is_folder(entry):
            yield entry.name, path / entry.name

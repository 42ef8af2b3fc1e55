"""Find the stores below a state directory, by reading only."""

import os
from collections.abc import Iterator
from pathlib import Path

from snapstore.errors import StoreNotFoundError
from snapstore.layouts.kafka_streams.names import (
    GLOBAL,
    LOCK,
    LOST_AND_FOUND,
    PROCESS_METADATA,
    is_named_topology,
    is_task,
)
from snapstore.layouts.kafka_streams.tasks import (
    is_folder,
    list_dir,
    located,
    read_task,
    unreadable,
)
from snapstore.model.identity import StoreId, natural_order
from snapstore.ports import Discovery


def discover(state_dir: Path, application: str | None, layout: str) -> Discovery:
    """Return the stores of one application, or of all, in the order of their tasks.

    ``state_dir`` is a `state.dir` or the directory of an application in it; links are followed.
    Raises StoreNotFoundError when the directory or the application is not there, CaptureError when
    something may not be read.
    """
    try:
        return _discover(state_dir, application, layout)
    except PermissionError as exc:
        raise unreadable(Path(exc.filename)) from exc


def _discover(given: Path, application: str | None, layout: str) -> Discovery:
    found = [
        (name, task, task_dir, read_task(task_dir, name, task))
        for name, directory in applications_in(given, application).items()
        for task, task_dir in tasks_of(directory)
    ]
    locations = [
        located(store, task_dir, StoreId(name, task, store.name), layout)
        for name, task, task_dir, content in found
        for store in content.stores
    ]
    notes = [note for *_, content in found for note in content.notes]
    if not locations:
        notes.append(f"no store has files below {given}")
    return Discovery(
        locations=tuple(sorted(locations, key=lambda one: one.store.order)), notes=tuple(notes)
    )


def _resolved(state_dir: Path) -> Path:
    try:
        return state_dir.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise StoreNotFoundError(
            f"the state directory {state_dir} is not there", path=str(state_dir)
        ) from exc


def applications_in(state_dir: Path, application: str | None) -> dict[str, Path]:
    """Return the directories of one application, or of all, by name; links are followed.

    Raises StoreNotFoundError when the directory or the application is not there.
    """
    root = _resolved(state_dir)
    if application is not None and _is_plain_name(application) and (root / application).is_dir():
        return {application: root / application}
    if is_application(root):
        name = state_dir.name if state_dir.name not in ("", "..") else root.name
        if application in (None, name, root.name):
            return {application or name: root}
    elif application is None:
        return {name: path for name, path in _folders(root) if is_application(path)}
    raise StoreNotFoundError(
        f"there is no application {application} in {state_dir}",
        hint="give the state.dir of the application, or its own directory in there",
        application=application,
        path=str(state_dir),
    )


def is_application(directory: Path) -> bool:
    """Whether a folder looks like that of an application: a task, or the files beside tasks."""
    return any(_is_sign(entry) for entry in list_dir(directory))


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

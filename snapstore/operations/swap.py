"""Put a staged task directory into place, so that a crash leaves the old one or the new one.

The order: journal, both exchanged, old directory moved aside and removed, journal removed. Where
the file system cannot exchange two directories, the old one is moved aside first, and a crash may
leave none until the next run: without a task directory the application replays its whole
changelog, which is safe; old files under newer offsets would not be.
"""

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from snapstore.errors import ManifestInvalidError, UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.manifest_rules import WORK_FOLDER
from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.operations.exchange import exchange
from snapstore.operations.stage_files import FileWriter, os_errors
from snapstore.operations.work_area import PARTS, STAGING, WorkArea, found_area

_SWAPS = "swaps"
_REPLACED = "replaced"

Reached = Callable[[str], None]
"""Called at named points of the work; a test crashes there."""


class Swap(msgspec.Struct, frozen=True, kw_only=True):
    """A swap under way. ``staged_inode`` tells the new directory wherever it has got to."""

    format: int = 1
    task: str
    staged_inode: int
    replaced: str | None
    keep_replaced: bool


def swap_in(
    area: WorkArea,
    task: str,
    *,
    writer: FileWriter,
    now: datetime,
    keep_replaced: bool,
    reached: Reached,
) -> Path | None:
    """Replace a task directory by its staged one; the application must be kept from starting.

    Returns where the old directory was kept, or None. Raises NoSpaceError, ConfigError or
    UnavailableError with the path when the file system refuses, and UnsafePathError where something
    else than a directory is in the task's place.
    """
    task_dir = area.tasks.path / task
    with os_errors(task_dir), writer.make_in(area.own, STAGING) as staging:
        with writer.make_in(area.shared, _REPLACED) as aside:
            there = area.tasks.holds_folder(task)
            replaced = _free_name(aside, task, now) if there else None
            swap = Swap(
                task=task,
                staged_inode=_inode(staging, task),
                replaced=replaced,
                keep_replaced=keep_replaced,
            )
            with writer.make_in(area.own, _SWAPS) as swaps:
                writer.write(swaps.here / f"{task}.json", msgspec.json.encode(swap), 0o640)
                swaps.sync()
            reached("journal written")
            if replaced is None:
                staging.move(task, area.tasks, task)
            else:
                _replace(area.tasks, task, staging, aside, replaced, reached)
            reached("new directory in place")
        return _finish(area, swap, reached)


def recover(area: WorkArea, *, reached: Reached) -> list[str]:
    """Resolve every swap that a crash has cut short in a folder of tasks; say what was found.

    If the new directory had not got into place, the old one is put back; if it had, the old one is
    removed as it would have been. Neither is removed when the application has made a directory of
    its own meanwhile. Raises ManifestInvalidError when a journal cannot be read.
    """
    with os_errors(area.own.path):
        return [_recover(area, task, reached) for task in _unfinished(area.own)]


def cut_short(root: Path, parent: Path) -> list[Path]:
    """Return the task directories of a folder below a state directory whose swaps have not ended.

    Of this user's runs; nothing that another user has left is believed.
    """
    with found_area(root, parent) as area:
        return [] if area.own is None else [parent / task for task in _unfinished(area.own)]


def cut_short_below(state_dir: Path) -> list[Path]:
    """Return the task directories anywhere below a folder whose swaps have not ended.

    Other folders in there may come and go.
    """
    parents = sorted(
        Path(parent) for parent, folders, _ in os.walk(state_dir) if WORK_FOLDER in folders
    )
    return [task_dir for parent in parents for task_dir in cut_short(state_dir, parent)]


def clear_work(area: WorkArea) -> None:
    """Remove what restores have left in the work folder, unless it is a directory kept on purpose.

    Only for the holder of the work folder's lock, once nothing is under way.
    """
    with os_errors(area.own.path):
        for name in (STAGING, PARTS, "replays", "quarantine"):
            area.own.remove_tree(name)
        tidy_work(area)


def tidy_work(area: WorkArea) -> None:
    """Remove the folders of the work that are empty."""
    with os_errors(area.own.path):
        for name in (STAGING, _SWAPS, "quarantine"):
            area.own.remove_if_empty(name)
        area.shared.remove_if_empty(_REPLACED)


def _recover(area: WorkArea, task: str, reached: Reached) -> str:
    swap = _read(area, task)
    task_dir = area.tasks.path / task
    there = area.tasks.look(task)
    with area.shared.make(_REPLACED)[0] as aside:
        if there is not None and there.st_ino == swap.staged_inode:
            if swap.replaced is not None:
                with area.own.make(STAGING)[0] as staging:
                    if staging.look(task) is not None:
                        staging.move(task, aside, swap.replaced)
            _finish(area, swap, reached)
            return f"an interrupted restore of {task_dir} was finished"
        note = f"an interrupted restore of {task_dir} was undone"
        if swap.replaced is not None and aside.look(swap.replaced) is not None:
            if there is not None:
                left = aside.path / swap.replaced
                note = f"an interrupted restore has left the former {task_dir} in {left}"
            else:
                aside.move(swap.replaced, area.tasks, task)
                reached("old directory put back")
    _remove_journal(area, task, reached)
    return note


def _replace(
    tasks: Folder, task: str, staging: Folder, aside: Folder, replaced: str, reached: Reached
) -> None:
    if exchange(staging.fd, tasks.fd, task):
        tasks.sync()
        staging.sync()
        reached("directories exchanged")
        staging.move(task, aside, replaced)
        return
    tasks.move(task, aside, replaced)
    reached("old directory moved aside")
    staging.move(task, tasks, task)


def _finish(area: WorkArea, swap: Swap, reached: Reached) -> Path | None:
    kept = None
    if swap.replaced is not None:
        with area.shared.make(_REPLACED)[0] as aside:
            if swap.keep_replaced:
                kept = aside.path / swap.replaced
            elif aside.look(swap.replaced) is not None:
                aside.remove_tree(swap.replaced)
                reached("old directory removed")
    _remove_journal(area, swap.task, reached)
    return kept


def _remove_journal(area: WorkArea, task: str, reached: Reached) -> None:
    with area.own.below(_SWAPS) as swaps:
        os.unlink(f"{task}.json", dir_fd=swaps.fd)
        swaps.sync()
    reached("journal removed")


def _read(area: WorkArea, task: str) -> Swap:
    journal = area.own.path / _SWAPS / f"{task}.json"
    try:
        swap = msgspec.json.decode(read_regular(area.part_of(_SWAPS) / f"{task}.json"), type=Swap)
    except (NotRegularError, msgspec.DecodeError) as error:
        raise ManifestInvalidError(
            f"{journal} cannot be read",
            hint="it tells which directory an interrupted restore moved aside: look into"
            f" {area.shared.path}, then remove it",
            path=str(journal),
        ) from error
    names = [swap.task] if swap.replaced is None else [swap.task, swap.replaced]
    if swap.task != task or any(name in ("", ".", "..") or "/" in name for name in names):
        raise ManifestInvalidError(f"{journal} names another folder", path=str(journal))
    return swap


def _unfinished(own: Folder) -> list[str]:
    try:
        with own.below(_SWAPS) as swaps:
            names = swaps.names()
    except (FileNotFoundError, UnsafePathError):
        return []
    return [name.removesuffix(".json") for name in names if name.endswith(".json")]


def _free_name(folder: Folder, task: str, now: datetime) -> str:
    stem = f"{task}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    number, name = 1, stem
    while folder.look(name) is not None:
        number += 1
        name = f"{stem}-{number}"
    return name


def _inode(folder: Folder, name: str) -> int:
    status = folder.look(name)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise UnsafePathError(f"refused: {folder.path / name} is not a directory")
    return status.st_ino

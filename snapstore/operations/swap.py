"""Put a staged task directory into place, so that a crash leaves the old one or the new one.

The order: journal, both exchanged, old directory moved aside and removed, journal removed. Where
the file system cannot exchange two directories, the old one is moved aside first, and a crash may
leave none until the next run: without a task directory the application replays its whole
changelog, which is safe; old files under newer offsets would not be.
"""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from snapstore.errors import ManifestInvalidError
from snapstore.model.manifest_rules import WORK_FOLDER
from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.operations.exchange import exchange
from snapstore.operations.restore_target import staging_folder, work_folder
from snapstore.operations.stage_files import FileWriter, os_errors, sync_folder

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
    task_dir: Path, *, writer: FileWriter, now: datetime, keep_replaced: bool, reached: Reached
) -> Path | None:
    """Replace the task directory by its staged one; the application must be kept from starting.

    Returns where the old directory was kept, or None. Raises NoSpaceError, ConfigError or
    UnavailableError with the path when the file system refuses.
    """
    staged = staging_folder(task_dir)
    replaced = _place_aside(task_dir, now) if task_dir.exists() else None
    swap = Swap(
        task=task_dir.name,
        staged_inode=staged.stat().st_ino,
        replaced=replaced.name if replaced else None,
        keep_replaced=keep_replaced,
    )
    journal = _journal(task_dir)
    writer.make_folder(journal.parent)
    writer.write(journal, msgspec.json.encode(swap), 0o640)
    sync_folder(journal.parent)
    reached("journal written")
    if replaced is None:
        _move(staged, task_dir)
    else:
        writer.make_folder(replaced.parent)
        _replace(task_dir, staged, replaced, reached)
    reached("new directory in place")
    return _finish(task_dir, swap, reached)


def recover(folder: Path, *, reached: Reached) -> list[str]:
    """Resolve every swap that a crash has cut short in a folder of tasks; say what was found.

    If the new directory had not got into place, the old one is put back; if it had, the old one is
    removed as it would have been. Neither is removed when the application has made a directory of
    its own meanwhile. Raises ManifestInvalidError when a journal cannot be read.
    """
    return [_recover(task_dir, reached) for task_dir in cut_short(folder)]


def cut_short(folder: Path) -> list[Path]:
    """Return the task directories of a folder of tasks whose swaps have not ended."""
    try:
        names = sorted(os.listdir(_journal(folder / "any").parent))  # noqa: PTH208 - names only
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name.removesuffix(".json") for name in names if name.endswith(".json")]


def cut_short_below(state_dir: Path) -> list[Path]:
    """Return the task directories anywhere below a folder whose swaps have not ended.

    Other folders in there may come and go.
    """
    parents = sorted(
        Path(parent) for parent, folders, _ in os.walk(state_dir) if WORK_FOLDER in folders
    )
    return [task_dir for parent in parents for task_dir in cut_short(parent)]


def _recover(task_dir: Path, reached: Reached) -> str:
    journal = _journal(task_dir)
    swap = _read(journal)
    replaced = _aside(task_dir) / swap.replaced if swap.replaced else None
    if task_dir.exists() and task_dir.stat().st_ino == swap.staged_inode:
        if replaced is not None and staging_folder(task_dir).exists():
            _move(staging_folder(task_dir), replaced)
        _finish(task_dir, swap, reached)
        return f"an interrupted restore of {task_dir} was finished"
    note = f"an interrupted restore of {task_dir} was undone"
    if replaced is not None and replaced.exists():
        if task_dir.exists():
            note = f"an interrupted restore has left the former {task_dir} in {replaced}"
        else:
            _move(replaced, task_dir)
            reached("old directory put back")
    _remove_journal(journal, reached)
    return note


def clear_work(task_dir: Path) -> None:
    """Remove what restores have left in the work folder, unless it is a directory kept on purpose.

    Only for the holder of the work folder's lock, once nothing is under way.
    """
    work = work_folder(task_dir)
    with os_errors(work):
        for name in ("staging", "parts", "replays"):
            if (work / name).exists():
                shutil.rmtree(work / name)
        for name in ("swaps", "replaced"):
            folder = work / name
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()


def _replace(task_dir: Path, staged: Path, replaced: Path, reached: Reached) -> None:
    with os_errors(task_dir):
        exchanged = exchange(staged, task_dir)
    if exchanged:
        sync_folder(task_dir.parent)
        sync_folder(staged.parent)
        reached("directories exchanged")
        _move(staged, replaced)
        return
    _move(task_dir, replaced)
    reached("old directory moved aside")
    _move(staged, task_dir)


def _finish(task_dir: Path, swap: Swap, reached: Reached) -> Path | None:
    replaced = _aside(task_dir) / swap.replaced if swap.replaced else None
    kept = replaced if swap.keep_replaced else None
    if replaced is not None and kept is None and replaced.exists():
        with os_errors(replaced):
            shutil.rmtree(replaced)
        reached("old directory removed")
    _remove_journal(_journal(task_dir), reached)
    return kept


def _remove_journal(journal: Path, reached: Reached) -> None:
    with os_errors(journal):
        journal.unlink()
    sync_folder(journal.parent)
    reached("journal removed")


def _move(source: Path, target: Path) -> None:
    with os_errors(target):
        source.rename(target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def _read(journal: Path) -> Swap:
    try:
        swap = msgspec.json.decode(read_regular(journal), type=Swap)
    except (NotRegularError, msgspec.DecodeError) as error:
        raise ManifestInvalidError(
            f"{journal} cannot be read",
            hint="it tells which directory an interrupted restore moved aside: look into"
            f" {journal.parent.parent}, then remove it",
            path=str(journal),
        ) from error
    if swap.replaced is not None and Path(swap.replaced).name != swap.replaced:
        raise ManifestInvalidError(f"{journal} names another folder", path=str(journal))
    return swap


def _journal(task_dir: Path) -> Path:
    return work_folder(task_dir) / "swaps" / f"{task_dir.name}.json"


def _aside(task_dir: Path) -> Path:
    return work_folder(task_dir) / "replaced"


def _place_aside(task_dir: Path, now: datetime) -> Path:
    stem = f"{task_dir.name}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    folder = _aside(task_dir)
    number, place = 1, folder / stem
    while os.path.lexists(place):
        number += 1
        place = folder / f"{stem}-{number}"
    return place

"""Move what cannot be trusted out of an application's way; nothing is ever deleted."""

import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from snapstore.model.folder import Folder
from snapstore.operations.restore_plan import IMMUTABLE_SUFFIXES
from snapstore.operations.stage_files import FileWriter, os_errors, sync_tree
from snapstore.operations.work_area import WorkArea

QUARANTINE = "quarantine"
README = "README.txt"


def keep_in_quarantine(
    area: WorkArea,
    task: str,
    paths: Sequence[str],
    reasons: Sequence[str],
    now: datetime,
    writer: FileWriter,
) -> Path | None:
    """Put a durable copy of files and folders of a task aside; return its folder.

    None when nothing of it is there. Tables are linked, so that they take no space, and the rest is
    copied; the originals stay where they are until the mended task directory replaces them. The
    copy appears under its name only when it is complete.
    """
    task_dir = area.tasks.path / task
    with os_errors(task_dir):
        found = [each for path in paths for each in _entries(area.tasks, task, path)]
        if not found:
            return None
        # What a crash has left half-copied; its originals are all in place.
        area.own.remove_tree(QUARANTINE)
        with (
            writer.make_in(area.shared, QUARANTINE) as kept,
            writer.make_in(area.own, QUARANTINE) as parts,
        ):
            name = _free_name(kept, task, now)
            part = parts.here / name
            writer.make_folder(part / task)
            for inner, mode in found:
                copy_over(area.tasks, f"{task}/{inner}", part / task / inner, mode, writer)
            note = _note(task_dir, kept.path / name, paths, reasons, now)
            writer.write(part / README, note.encode(), 0o640)
            sync_tree(part)
            parts.move(name, kept, name)
            return kept.path / name


def copy_over(source: Folder, name: str, target: Path, mode: int, writer: FileWriter) -> None:
    """Make a folder like the one that is there, link a table, or copy another file.

    A pipe or a socket has no bytes to copy, and is linked.
    """
    if stat.S_ISDIR(mode):
        writer.make_folder(target)
        return
    writer.make_folder(target.parent)
    if not stat.S_ISREG(mode):
        source.link_special(name, target)
    elif name.endswith(IMMUTABLE_SUFFIXES):
        writer.link(source, name, target, mode)
    else:
        writer.copy(source, name, target, mode)


def _entries(tasks: Folder, task: str, path: str) -> list[tuple[str, int]]:
    """Return a path of a task and what is below it, relative to the task, with the modes."""
    parent, _, last = f"{task}/{path}".rpartition("/")
    try:
        with tasks.below(parent) as folder:
            status = folder.look(last)
    except FileNotFoundError:
        return []
    if status is None:
        return []
    found = [(path, status.st_mode)]
    if stat.S_ISDIR(status.st_mode):
        inner = tasks.walk(f"{task}/{path}")
        found += [(f"{path}/{name}", each.st_mode) for name, each in inner]
    return found


def _free_name(folder: Folder, task: str, now: datetime) -> str:
    stem = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{task}"
    number, name = 1, stem
    while folder.look(name) is not None:
        number += 1
        name = f"{stem}-{number}"
    return name


def _note(
    task_dir: Path, folder: Path, paths: Sequence[str], reasons: Sequence[str], now: datetime
) -> str:
    moved = "\n".join(f"  {path}" for path in paths)
    why = "\n".join(f"  {reason}" for reason in reasons)
    return f"""Set aside by snapstore on {now.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}, from

  {task_dir}

these files and folders, since the application could not be trusted with them:

{moved}

Why:

{why}

The application fills such a store from its changelog by itself, or it was restored from a snapshot.
Once nothing is missed, this folder can be deleted; nothing else ever does that.

To bring everything back as it was, with the application stopped: move what the application has
made since out of {task_dir}, then

  cp -a {folder / task_dir.name}/. {task_dir}/

What was wrong is wrong again then. An offset that stood for such a store in .checkpoint was removed
or replaced there; without it the store is replayed over its files.
"""

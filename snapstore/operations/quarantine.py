"""Move what cannot be trusted out of an application's way; nothing is ever deleted."""

import os
import shutil
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from snapstore.operations.restore_plan import IMMUTABLE_SUFFIXES
from snapstore.operations.restore_target import walk_files, work_folder
from snapstore.operations.stage_files import FileWriter, os_errors, sync_folder, sync_tree

QUARANTINE = "quarantine"
README = "README.txt"


def keep_in_quarantine(
    task_dir: Path, paths: Sequence[str], reasons: Sequence[str], now: datetime, writer: FileWriter
) -> Path | None:
    """Put a durable copy of files and folders of a task aside; return its folder.

    None when nothing of it is there. Tables are linked, so that they take no space, and the rest is
    copied; the originals stay where they are until the mended task directory replaces them. The
    copy appears under its name only when it is complete.
    """
    found = [name for path in paths for name in _files(task_dir, path)]
    folders = [name for path in paths for name in _folders(task_dir, path)]
    if not found and not folders:
        return None
    folder = _place(work_folder(task_dir) / QUARANTINE, task_dir.name, now)
    part = folder.with_name(f"{folder.name}.part")
    with os_errors(part):
        # What a crash has left half-copied; its originals are all in place.
        for old in folder.parent.glob("*.part"):
            shutil.rmtree(old)
    writer.make_folder(part / task_dir.name)
    for name in folders:
        writer.make_folder(part / task_dir.name / name)
    for name in found:
        source, target = task_dir / name, part / task_dir.name / name
        with os_errors(source, "read"):
            mode = source.lstat().st_mode
        writer.make_folder(target.parent)
        # A pipe or a socket has no bytes to copy.
        if name.endswith(IMMUTABLE_SUFFIXES) or not stat.S_ISREG(mode):
            writer.link(source, target, mode)
        else:
            writer.copy(source, target, mode)
    writer.write(part / README, _note(task_dir, folder, paths, reasons, now).encode(), 0o640)
    sync_tree(part)
    with os_errors(folder):
        part.rename(folder)
    sync_folder(folder.parent)
    return folder


def _files(task_dir: Path, path: str) -> list[str]:
    place = task_dir / path
    if place.is_dir():
        return [f"{path}/{name}" for name, _ in walk_files(place)]
    return [path] if os.path.lexists(place) else []


def _folders(task_dir: Path, path: str) -> list[str]:
    place = task_dir / path
    if not place.is_dir():
        return []
    return [
        path,
        *(str(inner.relative_to(task_dir)) for inner in place.rglob("*") if inner.is_dir()),
    ]


def _place(parent: Path, task: str, now: datetime) -> Path:
    stem = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{task}"
    number, folder = 1, parent / stem
    while folder.exists():
        number += 1
        folder = parent / f"{stem}-{number}"
    return folder


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

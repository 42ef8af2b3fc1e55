"""List the files below a folder in the order of their keys, one folder in memory at a time."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from snapstore.ports import ObjectStat
from snapstore.storages.local.errors import translated
from snapstore.storages.local.location import OWN

_LOST_AND_FOUND = "lost+found"
"""Of a file system, and readable by root only."""


def walk(root: Path, prefix: str, start_after: str) -> Iterator[ObjectStat]:
    """Yield what lies below ``root`` under keys that begin with ``prefix``, sorted by key.

    Sorted by the bytes of the whole key, as S3 does: ``a-b`` comes before ``a/b``. Links and
    special files are no objects.
    """
    folder = prefix.rpartition("/")[0]
    if any(part in ("", ".", "..") for part in folder.split("/")) and folder:
        return
    base = f"{folder}/" if folder else ""
    yield from _walk(root / folder, base, prefix, start_after)


def _walk(folder: Path, base: str, prefix: str, start_after: str) -> Iterator[ObjectStat]:
    for key, entry in _children(folder, base):
        is_folder = key.endswith("/")
        if not key.startswith(prefix) and not (is_folder and prefix.startswith(key)):
            continue
        if is_folder:
            if key > start_after or start_after.startswith(key):
                yield from _walk(folder / entry.name, key, prefix, start_after)
        elif key > start_after and (found := _stat(key, entry)):
            yield found


def _children(folder: Path, base: str) -> list[tuple[str, os.DirEntry[str]]]:
    """Return the files and folders of one folder, keys of folders ending in ``/``, sorted."""
    found = []
    with translated("list", folder):
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        with entries:
            for entry in entries:
                key = base + entry.name
                if key in OWN or entry.name == _LOST_AND_FOUND:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found.append((f"{key}/", entry))
                elif entry.is_file(follow_symlinks=False):
                    found.append((key, entry))
    found.sort(key=lambda pair: os.fsencode(pair[0]))
    return found


def _stat(key: str, entry: os.DirEntry[str]) -> ObjectStat | None:
    """Return the object's facts; None when it was deleted after the folder was read."""
    with translated("look at", Path(entry.path)):
        try:
            state = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
    return object_stat(key, state)


def object_stat(key: str, state: os.stat_result) -> ObjectStat:
    return ObjectStat(
        key=key,
        size=state.st_size,
        modified_at=datetime.fromtimestamp(state.st_mtime, UTC),
    )

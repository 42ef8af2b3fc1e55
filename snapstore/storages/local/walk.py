"""List the files below a folder in the order of their keys, one folder in memory at a time."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime

from snapstore.errors import StorageError
from snapstore.model.folder import Folder
from snapstore.ports import ObjectStat
from snapstore.storages.local.errors import translated
from snapstore.storages.local.location import OWN
from snapstore.storages.local.tree import Tree, linked

_LOST_AND_FOUND = "lost+found"
"""Of a file system, and readable by root only."""
_DEEPEST = 100
"""So many folders are open at a time at most; keys have five at most."""


def walk(tree: Tree, prefix: str, start_after: str, *, top: str = "") -> Iterator[ObjectStat]:
    """Yield what lies below ``top`` under keys that begin with ``prefix``, sorted by key.

    Sorted by the bytes of the whole key, as S3 does: ``a-b`` comes before ``a/b``. Special files
    are no objects, nor are links beside the folders of keys. Raises UnsafePathError for a link
    where objects are: what it leads to would be missing from the list.
    """
    folder = prefix.rpartition("/")[0]
    if any(part in ("", ".", "..") for part in folder.split("/")) and folder:
        return
    base = f"{folder}/" if folder else ""
    yield from _walk(tree, top, base, prefix, start_after)


def _walk(tree: Tree, top: str, base: str, prefix: str, start_after: str) -> Iterator[ObjectStat]:
    name = "/".join(part for part in (top, base.removesuffix("/")) if part)
    path = tree.root / name
    if base.count("/") > _DEEPEST:
        raise StorageError(
            f"{path} lies more than {_DEEPEST} folders deep", hint="move it away", path=str(path)
        )
    with translated("list", path):
        try:
            folder = tree.folder(name)
        except (FileNotFoundError, NotADirectoryError):
            return
    with folder:
        for key, entry in _children(folder, base):
            is_folder = key.endswith("/")
            if not key.startswith(prefix) and not (is_folder and prefix.startswith(key)):
                continue
            if is_folder:
                if key > start_after or start_after.startswith(key):
                    yield from _walk(tree, top, key, prefix, start_after)
            elif key > start_after and (found := _stat(key, folder, entry)):
                yield found


def _children(folder: Folder, base: str) -> list[tuple[str, os.DirEntry[str]]]:
    """Return the files and folders of one folder, keys of folders ending in ``/``, sorted."""
    found = []
    with translated("list", folder.path), os.scandir(folder.fd) as entries:
        for entry in entries:
            key = base + entry.name
            if key in OWN or entry.name == _LOST_AND_FOUND:
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append((f"{key}/", entry))
            elif entry.is_file(follow_symlinks=False):
                found.append((key, entry))
            elif base and entry.is_symlink():
                raise linked(folder.path / entry.name)
    found.sort(key=lambda pair: os.fsencode(pair[0]))
    return found


def _stat(key: str, folder: Folder, entry: os.DirEntry[str]) -> ObjectStat | None:
    """Return the object's facts; None when it was deleted after the folder was read."""
    with translated("look at", folder.path / entry.name):
        status = folder.look(entry.name)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return object_stat(key, status)


def object_stat(key: str, status: os.stat_result) -> ObjectStat:
    return ObjectStat(
        key=key,
        size=status.st_size,
        modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
    )

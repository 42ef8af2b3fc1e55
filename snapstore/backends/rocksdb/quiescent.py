"""Look into a store that nobody writes to."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.databases import Found, find_databases, list_names
from snapstore.backends.rocksdb.descriptors import reserve
from snapstore.backends.rocksdb.freeze import read_small
from snapstore.backends.rocksdb.held import open_file
from snapstore.backends.rocksdb.opened import ALL_FILES, OpenDatabase, OpenError
from snapstore.backends.rocksdb.unsupported import looks_encrypted, refused, unsupported
from snapstore.backends.rocksdb.view import RocksDBView
from snapstore.errors import SourceDamagedError, StoreNotFoundError

_FEW_FILES = 128


def open_store(task_dir: Path, root: str, room: Path, stack: ExitStack) -> RocksDBView:
    """Open every database of a store through links in ``room``; ``stack`` closes them."""
    try:
        found = find_databases(task_dir, root)
    except FileNotFoundError:
        found = ()
    if not found:
        raise StoreNotFoundError(f"no state in {task_dir / root}", path=str(task_dir / root))
    opened = {}
    for index, each in enumerate(found):
        folder = room / str(index)
        folder.mkdir(mode=0o700)
        opened[each.name] = _open(each, folder)
        stack.callback(opened[each.name].close)
    return RocksDBView(opened)


def _open(found: Found, folder: Path) -> OpenDatabase:
    listed = list_names(found.path)
    try:
        manifest = names.named_manifest(read_small(found.path / names.CURRENT), found.name)
    except FileNotFoundError as error:
        raise _damaged(found, names.CURRENT, "it is missing") from error
    except SourceDamagedError as error:
        if looks_encrypted(found):
            raise refused(found.name, "its files seem to be encrypted") from error
        raise
    if manifest not in listed:
        raise _damaged(found, manifest, names.on_missing_manifest(manifest, listed))
    tables = [name for name in listed if names.is_table(name)]
    wanted = {names.CURRENT, manifest, *tables, *filter(names.is_log, listed)}
    for name in sorted(wanted | set(filter(names.is_blob, listed))):
        _require_readable(found, name)
        (folder / name).symlink_to((found.path / name).absolute())
    open_files = ALL_FILES if reserve(len(tables)) else _FEW_FILES
    try:
        return OpenDatabase(folder, found.name, max_open_files=open_files)
    except OpenError as failure:
        if (other := unsupported(found, failure.reason)) is not None:
            raise other from failure
        raise _damaged(found, failure.file, failure.reason) from failure


def _require_readable(found: Found, name: str) -> None:
    """Tell what RocksDB would wait for, and what it would take for damage.

    Raises SourceDamagedError for a pipe and the like, CaptureError where a right is missing.
    """
    path = found.path / name
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise _damaged(found, name, "it is not a regular file")
        os.close(open_file(path))
    except FileNotFoundError:
        return


def _damaged(found: Found, file: str | None, reason: str) -> SourceDamagedError:
    name = found.name if file is None else names.child(found.name, file)
    return SourceDamagedError(
        f"{name} is missing or broken: {reason}", database=found.name, file=name
    )

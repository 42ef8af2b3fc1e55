"""Find the databases of a store: its own folder, or one folder for each segment."""

import errno
import os
import stat
from pathlib import Path

import msgspec

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.held import unreadable
from snapstore.errors import CaptureError, SourceDamagedError


class Found(msgspec.Struct, frozen=True):
    """A folder that is one database, or is becoming one (``files`` without CURRENT)."""

    name: str
    path: Path


def find_databases(task_dir: Path, root: str) -> tuple[Found, ...]:
    """Return the databases of a store, sorted by name; none where there is no state.

    ``root`` is relative to the task directory and may be a link. A folder below it that is empty
    counts: Kafka Streams makes the folder of a segment before RocksDB makes its files.

    Raises FileNotFoundError when the store's folder is not there, UnsafePathError for a name that
    no snapshot can hold, and CaptureError for a folder that holds something else than a database.
    """
    names.check_folder(root)
    path = task_dir / root
    entries = list_names(path)
    if any(names.is_rocksdb(entry) for entry in entries):
        return (Found(root, path),)
    found = []
    for entry in sorted(entries):
        inner = path / entry
        if not _is_folder(inner):
            continue
        folder = names.child(root, entry)
        names.check_folder(folder)
        try:
            content = list_names(inner)
        except FileNotFoundError:
            continue
        if content and not any(names.is_rocksdb(name) for name in content):
            raise CaptureError(
                f"{inner} is not a RocksDB database, and nothing else belongs into a store",
                hint="move it out of the state directory",
                path=str(inner),
            )
        found.append(Found(folder, inner))
    return tuple(found)


def list_names(folder: Path) -> list[str]:
    """Return the names in a folder; raises FileNotFoundError, or CaptureError without the right."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only: a live folder is listed often
    except PermissionError as error:
        raise unreadable(folder) from error
    except NotADirectoryError as error:
        raise SourceDamagedError(
            f"{folder} is not a folder",
            hint="the application fails at it: see what it is, and move it away",
            path=str(folder),
        ) from error
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise
        raise CaptureError(
            f"{folder} cannot be listed: {error.strerror}", path=str(folder)
        ) from error


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise unreadable(path) from error

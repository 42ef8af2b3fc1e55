"""Read folders: one that may not be read is not an empty one."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from snapstore.errors import CaptureError
from snapstore.model.regular_file import may_not_be_read

_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def list_dir(path: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder; nothing when it is not there.

    Raises CaptureError when it cannot be read.
    """
    try:
        with os.scandir(path) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as exc:
        raise unreadable(path, exc) from exc


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder or a link to one; False for a link that leads nowhere.

    Raises CaptureError when that cannot be told.
    """
    try:
        return entry.is_dir()
    except OSError as exc:
        if exc.errno in _LEADS_NOWHERE:
            return False
        raise unreadable(Path(entry.path), exc) from exc


def is_there(path: Path, *, folder: bool = False) -> bool:
    """Whether something has that name, and is a folder if that is asked for.

    Raises CaptureError when that cannot be told.
    """
    try:
        status = path.stat()
    except OSError as exc:
        if exc.errno in _LEADS_NOWHERE:
            return False
        raise unreadable(path, exc) from exc
    return stat.S_ISDIR(status.st_mode) or not folder


def unreadable(path: Path, error: OSError) -> CaptureError:
    """Return the error of ours that says what the operating system said."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return may_not_be_read(path)
    return CaptureError(
        f"{path} cannot be read: {error.strerror or error}",
        hint="look at the disk and its mount",
        path=str(path),
    )

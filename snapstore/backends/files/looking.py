"""Look at a folder: which files there are, and what must not change while they are read."""

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.backends.files.options import FilesOptions
from snapstore.errors import CaptureError
from snapstore.model.folder_name import check_folder, child
from snapstore.model.pinned import identity_of
from snapstore.model.regular_file import may_not_be_read
from snapstore.model.store import FileIdentity

_YOUNG_NS = 10**9

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Look = dict[str, FileIdentity]
"""Regular files by their names relative to the store's folder."""


class UnsettledError(Exception):
    """The folder changed while it was read."""


@contextmanager
def open_root(task_dir: Path, root: str) -> Iterator[int]:
    """Open the store's folder, part by part below the task directory and never through a link.

    Raises FileNotFoundError where it is not there, CaptureError, UnsafePathError.
    """
    check_folder(root)
    opened = os.open(task_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in [] if root == "." else root.split("/"):
            inner = open_folder(part, opened, shown=str(task_dir / root))
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def open_folder(name: str, dir_fd: int, *, shown: str) -> int:
    """Open a folder by its name in another; raises FileNotFoundError, or CaptureError."""
    try:
        return os.open(name, _FOLDER, dir_fd=dir_fd)
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise may_not_be_read(Path(shown)) from error
    except OSError as error:
        reason = "it is a link" if error.errno in {errno.ELOOP, errno.ENOTDIR} else error.strerror
        raise CaptureError(
            f"{shown} cannot be opened as a folder: {reason}",
            hint="links are not followed; leave it out with the option ignore, or move it",
            path=shown,
        ) from error


def look(root_fd: int, root: str, options: FilesOptions) -> Look:
    """Return every file that is not ignored, with its identity.

    Raises CaptureError for a link, a device, a socket or an empty folder, which no snapshot can
    hold; UnsettledError when something vanishes meanwhile, or a folder is empty that was made or
    emptied just now; UnsafePathError for a hostile name.
    """
    found: Look = {}
    _look(root_fd, "", root, options, found)
    return found


def _look(folder_fd: int, prefix: str, root: str, options: FilesOptions, found: Look) -> None:
    entries = 0
    with os.scandir(folder_fd) as listed:
        names = sorted(entry.name for entry in listed)
    for entry in names:
        name = f"{prefix}{entry}"
        if options.treatment(name) == "ignored":
            continue
        entries += 1
        shown = child(root, name)
        check_folder(shown)
        try:
            status = os.lstat(entry, dir_fd=folder_fd)
            if stat.S_ISDIR(status.st_mode):
                inner = open_folder(entry, folder_fd, shown=shown)
                try:
                    _look(inner, f"{name}/", root, options, found)
                finally:
                    os.close(inner)
                continue
        except FileNotFoundError as error:
            raise UnsettledError(f"{name} vanished") from error
        if not stat.S_ISREG(status.st_mode):
            raise CaptureError(
                f"{shown} is {_kind(status.st_mode)}, which no snapshot can hold",
                hint="leave it out with the option ignore, or move it out of the store",
                file=shown,
            )
        found[name] = identity_of(status)
    if not entries and prefix:
        shown = child(root, prefix.rstrip("/"))
        # First its time and then that of the clock: it may be emptied in between.
        changed_ns = os.fstat(folder_fd).st_ctime_ns
        if 0 <= time.time_ns() - changed_ns < _YOUNG_NS:
            raise UnsettledError(f"{shown} is empty, and was made or emptied just now")
        raise CaptureError(
            f"{shown} is an empty folder, which no snapshot can hold",
            hint="if the store can do without it, leave it out with the option ignore",
            file=shown,
        )


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")

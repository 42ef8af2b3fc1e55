"""Write files and folders of a staged task directory: modes, owners, durability."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from snapstore.errors import ConfigError, NoSpaceError, UnavailableError
from snapstore.model.regular_file import open_regular

_SYNCS = 8

Warn = Callable[[str], None]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Modes of what a restore writes, and its owner (user id, group id).

    A file never gets more than ``file_mode``, whatever was recorded. ``owner`` None: that of the
    target directory when run as root, else the running user's.
    """

    file_mode: int = 0o640
    dir_mode: int = 0o750
    owner: tuple[int, int] | None = None

    def of_file(self, recorded: int) -> int:
        """Return the mode for a file: no wider than allowed, never set-uid, owner may write."""
        return (recorded & self.file_mode & 0o777) | 0o600


class FileWriter:
    """Makes files and folders with the right mode and owner; what cannot be set is warned of once.

    Raises NoSpaceError, ConfigError or UnavailableError with the path.
    """

    def __init__(self, permissions: Permissions, warn: Warn) -> None:
        self._permissions = permissions
        self._warn = warn
        self._warned = False

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it that are missing."""
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        with os_errors(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self._apply(fd, folder, self._permissions.dir_mode)
        finally:
            os.close(fd)

    def write(self, path: Path, content: bytes, recorded_mode: int) -> None:
        """Write a small file whole: under a temporary name first, durable when it returns."""
        temporary = path.with_name(path.name + ".tmp")
        with os_errors(path):
            fd = os.open(
                temporary,
                _NEW,
                0o600,
            )
            with os.fdopen(fd, "wb", buffering=0) as file:
                write_all(fd, content, 0)
                self._apply(fd, path, self._permissions.of_file(recorded_mode))
                os.fsync(file)
            temporary.replace(path)

    def copy(self, source: Path, target: Path, recorded_mode: int) -> None:
        with (
            os_errors(target),
            os.fdopen(open_regular(source), "rb") as reader,
            target.open("wb") as writer,
        ):
            shutil.copyfileobj(reader, writer, 1 << 20)
            self._apply(writer.fileno(), target, self._permissions.of_file(recorded_mode))

    def link(self, source: Path, target: Path, recorded_mode: int) -> None:
        """Give an immutable file a second name, or copy it where the file system cannot."""
        with os_errors(target):
            try:
                os.link(source, target, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
            else:
                return
        self.copy(source, target, recorded_mode)

    def adopt(self, path: Path, recorded_mode: int) -> None:
        """Give a file that lies there already its mode and owner."""
        with os_errors(path):
            fd = open_regular(path)
        try:
            self._apply(fd, path, self._permissions.of_file(recorded_mode))
        finally:
            os.close(fd)

    def _apply(self, fd: int, path: Path, mode: int) -> None:
        # Some network file systems refuse chmod or chown; the bytes are right all the same.
        try:
            if self._permissions.owner is not None and os.geteuid() == 0:
                os.fchown(fd, *self._permissions.owner)
            os.fchmod(fd, mode)
        except OSError as error:
            if not self._warned:
                self._warned = True
                self._warn(f"owner or mode of {path} could not be set: {error.strerror}")


def owner_for(path: Path) -> tuple[int, int] | None:
    """Return the owner of the nearest folder that exists when run as root, else None."""
    if os.geteuid() != 0:
        return None
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    status = existing.stat()
    return status.st_uid, status.st_gid


def write_all(fd: int, content: bytes, position: int) -> None:
    """Write all bytes at a position: ``pwrite`` may take fewer."""
    view = memoryview(content)
    while view:
        written = os.pwrite(fd, view, position)
        position += written
        view = view[written:]


def sync_tree(folder: Path) -> None:
    """Make every file and folder below, and the folder itself, durable.

    Several at a time: a file system makes those that wait for its journal durable together.
    """
    with os_errors(folder), ThreadPoolExecutor(_SYNCS, "sync") as pool:
        folders = [(Path(parent), names) for parent, _, names in os.walk(folder)]
        for _ in pool.map(_sync, [parent / name for parent, names in folders for name in names]):
            pass
        for _ in pool.map(_sync, [parent for parent, _ in folders]):
            pass


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with os_errors(folder):
        _sync(folder)


def _sync(path: Path) -> None:
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        # A pipe or a socket: its name is all there is of it.
        return
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def os_errors(path: Path, verb: str = "write") -> Iterator[None]:
    """Turn what the operating system refuses into an error of ours that names the path."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        reason = f"{where}: {error.strerror or error}"
        if error.errno in _NO_SPACE:
            raise NoSpaceError(
                f"the disk is full: {reason} (ENOSPC)",
                hint="free some space and run it again: it goes on where it stopped",
                path=str(where),
            ) from error
        if error.errno in _NOT_ALLOWED:
            raise ConfigError(
                f"cannot {verb} {reason}", hint="check its owner and mode", path=str(where)
            ) from error
        raise UnavailableError(f"cannot {verb} {reason}", path=str(where)) from error

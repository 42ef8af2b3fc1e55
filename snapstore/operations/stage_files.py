"""Write files and folders of a staged task directory: modes, owners, durability."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from snapstore.errors import ConfigError, NoSpaceError, UnavailableError
from snapstore.model.folder import Folder, shown
from snapstore.model.regular_file import open_regular

_SYNCS = 8

Warn = Callable[[str], None]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Modes of what a restore writes, and its owner (user id, group id; -1 leaves one as it is).

    A file never gets more than ``file_mode``, whatever was recorded, but for ``passed_on``: the
    bits that files and folders have from the folder that they are made in. ``owner`` None: that of
    the target directory when run as root, else the running user's.
    """

    file_mode: int = 0o640
    dir_mode: int = 0o750
    owner: tuple[int, int] | None = None
    passed_on: int = 0

    def of_file(self, recorded: int) -> int:
        """Return the mode for a file: no wider than allowed, never set-uid, owner may write."""
        return (recorded & self.file_mode & 0o777) | 0o600 | (self.passed_on & 0o060)

    def of_folder(self) -> int:
        return self.dir_mode | self.passed_on

    def within(
        self, folder: os.stat_result, replaced: os.stat_result | None = None
    ) -> "Permissions":
        """Return those of what is made in a folder, in place of what is ``replaced``.

        A group that may write into it, as with ``fsGroup`` in Kubernetes, may write there, too.
        """
        alike = [replaced or folder]
        if alike[0].st_gid == folder.st_gid:
            alike.append(folder)
        passed_on = 0
        for each in alike:
            passed_on |= each.st_mode & stat.S_ISGID
            passed_on |= 0o070 if each.st_mode & stat.S_IWGRP else 0
        owner: tuple[int, int] | None
        if os.geteuid() == 0:
            owner = self.owner or (alike[0].st_uid, alike[0].st_gid)
        else:
            owner = (-1, alike[0].st_gid) if passed_on else None
        return msgspec.structs.replace(self, owner=owner, passed_on=passed_on)


class FileWriter:
    """Makes files and folders with the right mode and owner; what cannot be set is warned of once.

    Raises NoSpaceError, ConfigError or UnavailableError with the path.
    """

    def __init__(self, permissions: Permissions, warn: Warn) -> None:
        self._permissions = permissions
        self._warn = warn
        self._warned = False

    @classmethod
    def within(
        cls, folder: Folder, asked: Permissions, warn: Warn, *, replacing: str | None = None
    ) -> "FileWriter":
        """Return one for what is made in a folder, in place of what has a name there."""
        replaced = None if replacing is None else folder.look(replacing)
        return cls(asked.within(folder.status(), replaced), warn)

    def make_in(self, folder: Folder, name: str) -> Folder:
        """Open a folder in another one, or make it."""
        inner, made = folder.make(name)
        if made:
            self.settle(inner.fd, inner.path, None)
        return inner

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it that are missing, where nobody else may write."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            with os_errors(each):
                with suppress(FileExistsError):
                    each.mkdir(mode=0o700)
                fd = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                self.settle(fd, each, None)
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
                self.settle(fd, path, recorded_mode)
                os.fsync(file)
            temporary.replace(path)

    def copy(self, source: Folder, name: str, target: Path, recorded_mode: int) -> None:
        """Copy a file that lies somewhere below a folder."""
        with (
            os_errors(target),
            os.fdopen(source.open_file(name), "rb") as reader,
            os.fdopen(os.open(target, _NEW, 0o600), "wb") as writer,
        ):
            shutil.copyfileobj(reader, writer, 1 << 20)
            self.settle(writer.fileno(), target, recorded_mode)

    def link(self, source: Folder, name: str, target: Path, recorded_mode: int) -> None:
        """Give an immutable file a second name, or copy it where the file system cannot."""
        with os_errors(target):
            try:
                source.link_file(name, target)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
            else:
                return
        self.copy(source, name, target, recorded_mode)

    def adopt(self, path: Path, recorded_mode: int) -> None:
        """Give a file that lies there already its mode and owner."""
        with os_errors(path):
            fd = open_regular(path)
        try:
            self.settle(fd, path, recorded_mode)
        finally:
            os.close(fd)

    def settle(self, fd: int, path: Path, recorded_mode: int | None) -> None:
        """Give an open file its owner and mode; a folder has no recorded one."""
        permissions = self._permissions
        if recorded_mode is None:
            mode = permissions.of_folder()
        else:
            mode = permissions.of_file(recorded_mode)
        # Some network file systems refuse chmod or chown; the bytes are right all the same.
        try:
            if permissions.owner is not None:
                os.fchown(fd, *permissions.owner)
        except OSError as error:
            self._warn_once(path, error)
        try:
            os.fchmod(fd, mode)
        except OSError as error:
            self._warn_once(path, error)

    def _warn_once(self, path: Path, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"owner or mode of {shown(str(path))} could not be set: {error.strerror}")


def told_of_owner(asked: Permissions) -> str | None:
    """Return what is to be said of an owner that cannot be given, since root does not run this."""
    if asked.owner is None or os.geteuid() == 0 or asked.owner == (os.geteuid(), os.getegid()):
        return None
    uid, gid = asked.owner
    return (
        f"restore.owner is {uid}:{gid}, and only root can give files away:"
        f" they belong to user {os.geteuid()}"
    )


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
        where = shown(str(error.filename if isinstance(error.filename, str | Path) else path))
        reason = f"{where}: {error.strerror or error}"
        if error.errno in _NO_SPACE:
            raise NoSpaceError(
                f"the disk is full: {reason} (ENOSPC)",
                hint="free some space and run it again: it goes on where it stopped",
                path=where,
            ) from error
        if error.errno in _NOT_ALLOWED:
            raise ConfigError(
                f"cannot {verb} {reason}", hint="check its owner and mode", path=where
            ) from error
        raise UnavailableError(f"cannot {verb} {reason}", path=where) from error

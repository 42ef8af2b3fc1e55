"""Files that cannot go away while they are read: pinned by a descriptor, or copied."""

import errno
import os
import stat
from pathlib import Path
from typing import Protocol

from snapstore.backends.rocksdb.copying import copy_bytes
from snapstore.errors import AccessDeniedError, CaptureError, SourceDamagedError
from snapstore.model.pinned import identity_of
from snapstore.model.store import ByteSource, FileIdentity

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Held(Protocol):
    """One immutable file of the source."""

    name: str
    link: str
    """A path that leads to the bytes, whatever became of the name."""

    def status(self) -> os.stat_result:
        """The file's own, as it is now; ``st_nlink`` is 0 once the source has dropped it."""
        ...

    def source(self, size: int) -> ByteSource: ...

    def free(self) -> None:
        """Let go of the bytes, for good."""
        ...

    def abandon(self) -> None:
        """This attempt failed: let go of what the next one could not use."""
        ...


def open_file(path: Path | str) -> int:
    """Open a regular file for reading, never through a link.

    Raises FileNotFoundError, CaptureError naming the file when it cannot be read, or OSError where
    this process may open no more files.
    """
    try:
        fd = os.open(path, _FLAGS)
    except PermissionError as error:
        raise unreadable(Path(path)) from error
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.EMFILE, errno.ENFILE}:
            raise
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise CaptureError(f"{path} cannot be opened: {reason}", path=str(path)) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise CaptureError(f"{path} is not a file", path=str(path))
    return fd


def unreadable(path: Path) -> AccessDeniedError:
    return AccessDeniedError(
        f"no right to read {path}",
        hint="run as the owner of the state directory, or grant read access to it",
        path=str(path),
        uid=os.geteuid(),
    )


class Pin:
    """A file kept alive by an open descriptor; deleting its name does not free it.

    A store may have tens of thousands, so its path is a plain text.
    """

    __slots__ = ("_fd", "link", "name")

    def __init__(self, path: str) -> None:
        self.name = path.rpartition("/")[2]
        self._fd: int | None = open_file(path)
        self.link = f"/proc/self/fd/{self._fd}"

    @property
    def fd(self) -> int:
        if self._fd is None:
            raise CaptureError(f"{self.name} was read after it had been released", file=self.name)
        return self._fd

    def status(self) -> os.stat_result:
        return os.fstat(self.fd)

    def source(self, size: int) -> ByteSource:
        return PinnedSource(self, size)

    def free(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    abandon = free


class PinnedSource:
    """The first ``size`` bytes of a pinned file; refuses to read once it was released.

    Implements WatchedSource.
    """

    __slots__ = ("_pin", "_size")

    def __init__(self, pin: Pin, size: int) -> None:
        self._pin = pin
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        try:
            return os.pread(self._pin.fd, max(0, min(length, self._size - position)), position)
        except OSError as error:
            raise SourceDamagedError(
                f"{self._pin.name} cannot be read: {error.strerror}", file=self._pin.name
            ) from error

    def identity_now(self) -> FileIdentity:
        return identity_of(self._pin.status())


class StagedSource:
    """A file of our own, opened for each read: it holds no descriptor."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        fd = os.open(self._path, _FLAGS)
        try:
            return os.pread(fd, max(0, min(length, self._size - position)), position)
        finally:
            os.close(fd)


class Copy:
    """A copy in ``staging``, named by what it is a copy of, so that a later attempt finds it."""

    def __init__(self, path: str, staging: Path, min_free_bytes: int) -> None:
        self.name = path.rpartition("/")[2]
        self._path = Path(path)
        fd = open_file(path)
        try:
            self._status = os.fstat(fd)
            of = identity_of(self._status)
            self._copy = staging / f"{of.device}-{of.inode}-{of.size}-{of.mtime_ns}"
            if not self._copy.exists():
                copy_bytes(fd, self._copy, of.size, min_free_bytes=min_free_bytes)
        finally:
            os.close(fd)
        self.link = str(self._copy)

    def is_current(self) -> bool:
        """Whether the name still leads to the very bytes that were copied."""
        try:
            return identity_of(self._path.stat()) == identity_of(self._status)
        except FileNotFoundError:
            return True

    def status(self) -> os.stat_result:
        return self._status

    def source(self, size: int) -> ByteSource:
        return StagedSource(self._copy, size)

    def free(self) -> None:
        self._copy.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Keep the copy: it may still be the right one, and it goes with the staging folder."""

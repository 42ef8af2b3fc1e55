"""A file that is held open, so that its bytes stay whatever becomes of its name."""

import errno
import os
import stat
from pathlib import Path

from snapstore.errors import CaptureError, SourceDamagedError
from snapstore.model.store import FileIdentity

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class PinnedFile:
    """A regular file opened by name, never through a link; a ByteSource of its size at that time.

    Raises FileNotFoundError where the name has gone, CaptureError for a link, a device or anything
    else that is no regular file, and where a right is missing.
    """

    def __init__(self, name: str, *, dir_fd: int | None = None, shown: str | None = None) -> None:
        """``shown`` is what messages call it (default: ``name``)."""
        self.name = shown or name
        try:
            fd = os.open(name, _FLAGS, dir_fd=dir_fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise CaptureError(
                f"{self.name} cannot be opened: {reason}",
                hint="only regular files can be taken",
                file=self.name,
            ) from error
        self._fd: int | None = fd
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise CaptureError(
                f"{self.name} is not a regular file",
                hint="only regular files can be taken",
                file=self.name,
            )
        self.identity = identity_of(status)
        self.mode = stat.S_IMODE(status.st_mode)

    @property
    def size(self) -> int:
        return self.identity.size

    def status(self) -> os.stat_result:
        """The file as it is now."""
        return os.fstat(self._open())

    def pread(self, length: int, position: int) -> bytes:
        """Return ``length`` bytes within the size; raises SourceDamagedError, CaptureError."""
        try:
            return os.pread(self._open(), max(0, min(length, self.size - position)), position)
        except OSError as error:
            raise SourceDamagedError(
                f"{self.name} cannot be read: {error.strerror}", file=self.name
            ) from error

    def close(self) -> None:
        """Let go of it; it cannot be read any more."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _open(self) -> int:
        if self._fd is None:
            raise CaptureError(f"{self.name} was read after it had been released", file=self.name)
        return self._fd


def identity_of(status: os.stat_result) -> FileIdentity:
    return FileIdentity(
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )


def leads_to(path: Path, status: os.stat_result) -> bool:
    """Whether a path leads to that very file or folder, whatever was done to it since."""
    try:
        now = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)

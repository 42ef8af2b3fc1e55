"""Read a small file whole; never wait for one that is none.

A pipe is opened only when somebody writes to it, and a device may give bytes without end. So a
file is opened without waiting and never through a link, and it is read only if it is regular.
"""

import errno
import os
import stat
from pathlib import Path

from snapstore.errors import AccessDeniedError, SourceDamagedError

LIMIT_BYTES = 16 << 20

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_SPECIAL = (errno.ENXIO, errno.ENODEV)
"""What opening a socket, or a device that is not there, fails with."""


class NotRegularError(OSError):
    """It is a pipe, a device, a socket, a folder or a link, or larger than such a file can be."""


def open_regular(path: Path) -> int:
    """Return a descriptor of a regular file.

    Raises NotRegularError, or OSError as ``os.open`` does.
    """
    try:
        fd = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(path, "it is a link") from error
        if error.errno in _SPECIAL:
            raise _refused(path, "it is not a regular file") from error
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise _refused(path, "it is not a regular file")


def read_regular(path: Path, *, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the content of a regular file of at most ``limit_bytes``.

    Raises NotRegularError, or OSError as ``os.open`` does.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise _refused(path, f"it is larger than {limit_bytes} bytes")
    return content


def read_source(path: Path, *, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the content of a small file that an application keeps.

    Raises FileNotFoundError or NotADirectoryError where there is none, AccessDeniedError where a
    right is missing, SourceDamagedError for anything else that cannot be read.
    """
    try:
        return read_regular(path, limit_bytes=limit_bytes)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except PermissionError as error:
        raise may_not_be_read(path) from error
    except OSError as error:
        raise SourceDamagedError(
            f"{path} cannot be read: {error.strerror}",
            hint="the application could not read it either: look at what it is, and move it away",
            path=str(path),
        ) from error


def may_not_be_read(path: Path) -> AccessDeniedError:
    """Return the error for a file or folder of an application to which a right is missing."""
    return AccessDeniedError(
        f"{path} may not be read",
        hint="run snapstore as the user of the application, or as a member of its group",
        path=str(path),
    )


def _refused(path: Path, why: str) -> NotRegularError:
    return NotRegularError(errno.EINVAL, why, str(path))

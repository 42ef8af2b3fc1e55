"""Translate what the operating system says."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import CredentialsError, NoSpaceError, StorageError

FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def translated(action: str, path: Path, *, needed_bytes: int = 0) -> Iterator[None]:
    """Raise NoSpaceError, CredentialsError or StorageError in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise explained(error, action, path, needed_bytes=needed_bytes) from error


def explained(
    error: OSError, action: str, path: Path, *, needed_bytes: int = 0
) -> NoSpaceError | CredentialsError | StorageError:
    """Return the error of our tree that says what ``error`` means."""
    what = f"cannot {action} {path}: {error.strerror or error}"
    if error.errno in FULL:
        available = _available_bytes(path)
        return NoSpaceError(
            what,
            hint="free some space, or check the quota; snapstore delete and prune need none",
            path=str(path),
            needed_bytes=needed_bytes,
            available_bytes=available,
        )
    if error.errno in _FORBIDDEN:
        return CredentialsError(
            what,
            hint="the file system is mounted read-only"
            if error.errno == errno.EROFS
            else f"give user {os.geteuid()} the right to it, or run as its owner",
            path=str(path),
        )
    return StorageError(what, path=str(path))


def _available_bytes(path: Path) -> int | None:
    """Return what an ordinary user may still write there; None where that cannot be asked."""
    for folder in (path, *path.parents):
        try:
            state = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return state.f_bavail * state.f_frsize
    return None

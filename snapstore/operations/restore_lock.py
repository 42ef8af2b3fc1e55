"""One restore at a time in one work folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from snapstore.errors import RunInProgressError, UnavailableError
from snapstore.operations.stage_files import FileWriter, os_errors

_TRIES = 100


@contextmanager
def work_lock(work: Path, writer: FileWriter) -> Iterator[None]:
    """Hold the work folder for one run. It goes when nothing is left in it.

    Raises RunInProgressError, and UnavailableError where no folder can be made.
    """
    path = work / "lock"
    fd, tries_left = None, _TRIES
    while fd is None:
        tries_left -= 1
        fd = _lock(path, writer, tries_left)
    try:
        yield
    finally:
        if {entry.name for entry in work.iterdir()} == {"lock"}:
            path.unlink()
            # The next run may have made its lock file there already.
            with suppress(OSError):
                work.rmdir()
        os.close(fd)


def _lock(path: Path, writer: FileWriter, tries_left: int) -> int | None:
    """Take the lock; None when the run before has removed it, or its folder, meanwhile."""
    try:
        writer.make_folder(path.parent)
        with os_errors(path):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except UnavailableError as error:
        if isinstance(error.__cause__, FileNotFoundError) and tries_left:
            return None
        raise
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise RunInProgressError(
            f"another restore works in {path.parent.parent}", path=str(path.parent)
        ) from error
    try:
        if path.stat().st_ino == os.fstat(fd).st_ino:
            return fd
    except FileNotFoundError:
        pass
    os.close(fd)
    if not tries_left:
        raise RunInProgressError(
            f"other restores begin and end in {path.parent.parent}", path=str(path.parent)
        )
    return None

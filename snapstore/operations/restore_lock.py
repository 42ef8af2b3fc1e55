"""One restore at a time in one work folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from snapstore.errors import RunInProgressError, UnavailableError
from snapstore.operations.stage_files import FileWriter, os_errors


@contextmanager
def work_lock(work: Path, writer: FileWriter) -> Iterator[None]:
    """Hold the work folder for one run. It goes when nothing is left in it.

    Raises RunInProgressError.
    """
    path = work / "lock"
    while (fd := _lock(path, writer)) is None:
        continue
    try:
        yield
    finally:
        if {entry.name for entry in work.iterdir()} == {"lock"}:
            path.unlink()
            # The next run may have made its lock file there already.
            with suppress(OSError):
                work.rmdir()
        os.close(fd)


def _lock(path: Path, writer: FileWriter) -> int | None:
    """Take the lock; None when the run before has removed it, or its folder, meanwhile."""
    try:
        writer.make_folder(path.parent)
        with os_errors(path):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except UnavailableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
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
    return None

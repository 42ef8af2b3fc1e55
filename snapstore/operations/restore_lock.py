"""One restore at a time in one work folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import RunInProgressError
from snapstore.operations.stage_files import FileWriter, os_errors


@contextmanager
def work_lock(work: Path, writer: FileWriter) -> Iterator[None]:
    """Hold the work folder for one run. It goes when nothing is left in it.

    Raises RunInProgressError.
    """
    path = work / "lock"
    while True:
        writer.make_folder(work)
        with os_errors(path):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise RunInProgressError(
                f"another restore works in {work.parent}", path=str(work)
            ) from error
        # The run before may have removed the folder between our open and our lock.
        if path.exists() and path.stat().st_ino == os.fstat(fd).st_ino:
            break
        os.close(fd)
    try:
        yield
    finally:
        if {entry.name for entry in work.iterdir()} == {"lock"}:
            path.unlink()
            work.rmdir()
        os.close(fd)

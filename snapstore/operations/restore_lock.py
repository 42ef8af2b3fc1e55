"""One run at a time in one folder of tasks."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from snapstore.errors import RunInProgressError, UnavailableError, UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.manifest_rules import WORK_FOLDER
from snapstore.operations.stage_files import FileWriter, os_errors
from snapstore.operations.work_area import WorkArea, open_own, remove_own

_LOCK = "lock"
_TRIES = 100
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def work_lock(tasks: Folder, writer: FileWriter) -> Iterator[WorkArea]:
    """Hold the work folder beside the tasks for one run. It goes when nothing is left in it.

    Raises RunInProgressError, UnavailableError where no folder can be made, and UnsafePathError
    where somebody else's lies in its place.
    """
    held, tries_left = None, _TRIES
    while held is None:
        tries_left -= 1
        held = _lock(tasks, writer, tries_left)
    shared, lock = held
    try:
        with shared, open_own(shared) as own:
            try:
                yield WorkArea(tasks, shared, own)
            finally:
                remove_own(shared)
                if shared.names() == [_LOCK]:
                    os.unlink(_LOCK, dir_fd=shared.fd)
                    # The next run may have made its lock file there already.
                    tasks.remove_if_empty(WORK_FOLDER)
    finally:
        os.close(lock)


def _lock(tasks: Folder, writer: FileWriter, tries_left: int) -> tuple[Folder, int] | None:
    """Take the lock; None when the run before has removed it, or its folder, meanwhile."""
    try:
        with os_errors(tasks.path / WORK_FOLDER):
            shared = writer.make_in(tasks, WORK_FOLDER)
            try:
                lock = _open(shared, writer)
            except BaseException:
                shared.close()
                raise
    except UnavailableError as error:
        if isinstance(error.__cause__, FileNotFoundError) and tries_left:
            return None
        raise
    try:
        _take(lock, shared)
        now = tasks.look(WORK_FOLDER)
        in_place = now is not None and os.path.samestat(now, shared.status())
        found = shared.look(_LOCK)
        if in_place and found is not None and os.path.samestat(found, os.fstat(lock)):
            return shared, lock
        if not tries_left:
            raise RunInProgressError(
                f"other restores begin and end in {tasks.path}", path=str(tasks.path)
            )
    except BaseException:
        os.close(lock)
        shared.close()
        raise
    os.close(lock)
    shared.close()
    return None


def _open(shared: Folder, writer: FileWriter) -> int:
    try:
        lock = os.open(_LOCK, _FLAGS | os.O_EXCL, 0o600, dir_fd=shared.fd)
    except FileExistsError:
        lock = os.open(_LOCK, _FLAGS, 0o600, dir_fd=shared.fd)
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            os.close(lock)
            raise UnsafePathError(
                f"refused: {shared.path / _LOCK} is not a regular file",
                hint="move it away",
                path=str(shared.path / _LOCK),
            ) from None
    else:
        writer.settle(lock, shared.path / _LOCK, 0o640)
    return lock


def _take(lock: int, shared: Folder) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunInProgressError(
            f"another restore works in {shared.path.parent}", path=str(shared.path)
        ) from error
    except OSError as error:
        # It guards against a second run only; whether the application runs is asked elsewhere.
        if error.errno not in _NO_LOCKS:
            raise

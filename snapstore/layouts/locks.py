"""File locks of other processes: seen without taking any, and held against them.

Kafka Streams locks `.lock` in its application directory, RocksDB locks `LOCK` in each database;
both with POSIX record locks (`fcntl`).
"""

import errno
import fcntl
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from snapstore.errors import AccessDeniedError, CaptureError, StoreInUseError, UnsafePathError
from snapstore.layouts import lock_probe
from snapstore.layouts.lock_probe import FLOCK
from snapstore.layouts.lock_watch import LockWatch
from snapstore.model.folder import Folder

_TASKS = Path("/proc/self/task")

_watches: list[LockWatch] = []


_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
OVERRIDE = "assume_stopped_without_locks"
"""The option of layouts that takes an application for stopped where no file can be locked."""


def held_locks(paths: Iterable[Path], *, assume_free: bool = False) -> frozenset[Path]:
    """Return those of the lock files that somebody holds; files that are not there are free.

    A child process asks: closing any descriptor of a file drops every POSIX lock that the closing
    process has on it, so a program that embeds snapstore would lose its own. For the same reason
    the program's own locks are seen too. /proc/locks would need no child, but does not show those
    of another container. Raises AccessDeniedError when a file may not be opened, CaptureError when
    that fails in another way, as where the file system has no locks, unless ``assume_free``.
    """
    asked = list(dict.fromkeys(paths))
    if not asked:
        return frozenset()
    names = [os.fsencode(path) for path in asked]
    told = _asked(names)
    if not (told.startswith(b"+") and told.endswith(b"\n")):
        why = told.removeprefix(b"-").decode(errors="backslashreplace").strip()
        if any(why.endswith(os.strerror(number)) for number in _NO_LOCKS):
            if assume_free:
                return frozenset()
            raise _without_locks(why)
        denied = why.endswith(os.strerror(errno.EACCES))
        kind = AccessDeniedError if denied else CaptureError
        raise kind(
            f"cannot tell whether the application runs: {why or 'nobody answered'}",
            hint="run snapstore as the user of the application",
        )
    return frozenset(asked[int(number)] for number in told[1:].split())


@contextmanager
def watching_locks() -> Iterator[None]:
    """Make the questions of many threads cheap, where this begins while there is only one.

    A child process answers them until this is left. The questions of other threads than those of
    the caller are answered by it as well.
    """
    if _watches or not _is_single_threaded():
        yield
        return
    watch = LockWatch()
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)
        watch.close()


def _asked(names: Sequence[bytes]) -> bytes:
    for watch in _watches:
        told = watch.ask(names)
        if told is not None:
            return told
    if not _is_single_threaded():
        return _asked_by_a_program(names)
    with closing(LockWatch()) as watch:
        return watch.ask(names) or b""


def _is_single_threaded() -> bool:
    """Whether a fork is safe: of several threads it copies one, and the locks that others hold."""
    try:
        return len(list(_TASKS.iterdir())) == 1
    except FileNotFoundError:
        return False


def _asked_by_a_program(names: Sequence[bytes]) -> bytes:
    # Imported here: a run that needs no child does not need it either.
    import subprocess

    done = subprocess.run(
        [sys.executable or "python3", "-I", "-S", lock_probe.__file__],
        input=b"\0".join(names),
        capture_output=True,
        check=False,
    )
    return done.stdout or done.stderr


@contextmanager
def hold_lock(path: Path, root: Path, *, assume_free: bool = False) -> Iterator[None]:
    """Hold the lock file so that its application cannot start; the file is made and stays.

    No link between ``root`` and the file is followed. An open file description lock: it conflicts
    with POSIX locks and is not dropped when another descriptor of the file is closed. While it is
    held ``held_locks`` reports it as well. Raises StoreInUseError when somebody has the lock,
    UnsafePathError where something else than a file has its name, CaptureError where the file
    system has no locks, unless ``assume_free``.
    """
    if path in held_locks([path], assume_free=assume_free):
        raise _in_use(path)
    with Folder.reach(root, path.parent) as folder:
        file = _open_or_make(folder, path.name)
    try:
        wanted = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)
        except OSError as exc:
            if exc.errno in (errno.EAGAIN, errno.EACCES):
                raise _in_use(path) from exc
            if exc.errno not in _NO_LOCKS:
                raise
            if not assume_free:
                raise _without_locks(f"{path}: {exc.strerror}") from exc
        yield
    finally:
        os.close(file)


def _open_or_make(folder: Folder, name: str) -> int:
    """Open the lock file. A new one belongs to whom its folder belongs to: root may be at work."""
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    path = folder.path / name
    try:
        file = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o640, dir_fd=folder.fd)
    except FileExistsError:
        try:
            file = os.open(name, flags, dir_fd=folder.fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise _no_file(path) from error
            error.filename = str(path)
            raise
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise _no_file(path) from None
        return file
    status = folder.status()
    if os.geteuid() == 0:
        os.fchown(file, status.st_uid, status.st_gid)
    if status.st_mode & stat.S_IWGRP:
        with suppress(PermissionError):
            os.fchown(file, -1, status.st_gid)
        os.fchmod(file, 0o660)
    return file


def _no_file(path: Path) -> UnsafePathError:
    return UnsafePathError(
        f"refused: {path} is not a regular file", hint="move it away", path=str(path)
    )


def _without_locks(why: str) -> CaptureError:
    return CaptureError(
        f"cannot tell whether the application runs: {why}",
        hint="the file system has no locks: mount it with locks, or, with the application stopped,"
        f" set {OVERRIDE}: true below state.options in the configuration",
    )


def _in_use(path: Path) -> StoreInUseError:
    return StoreInUseError(
        f"an application runs on {path.parent}",
        hint="stop the application first",
        path=str(path.parent),
    )

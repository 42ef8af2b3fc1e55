"""One run at a time for one application and one repository on one host."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from snapstore.errors import ConfigError, RunInProgressError
from snapstore.repository import keys


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    since: datetime


@contextmanager
def run_lock(folder: Path, application: str, *, now: datetime) -> Iterator[None]:
    """Hold the lock of one application; ``folder`` belongs to one repository.

    The kernel lets go of it when this process ends, however it ends; the file stays, and means
    nothing by itself. Raises RunInProgressError at once when another process holds it.
    """
    path = folder / f"{keys.segment(application)}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot make the lock file {path}: {error.strerror}",
            hint="choose another place for state.cache_dir",
            path=str(path),
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _in_progress(fd, application) from error
        except OSError as error:
            raise ConfigError(
                f"cannot lock {path}: {error.strerror}",
                hint="choose a place for state.cache_dir whose file system has locks",
                path=str(path),
            ) from error
        with suppress(OSError):
            # On a full disk the lock holds as well; only the other's message says less.
            os.truncate(fd, 0)
            os.pwrite(fd, msgspec.json.encode(_Holder(os.getpid(), now)), 0)
        yield
    finally:
        os.close(fd)


def _in_progress(fd: int, application: str) -> RunInProgressError:
    try:
        holder = msgspec.json.decode(os.pread(fd, 1024, 0), type=_Holder)
    except msgspec.DecodeError:
        # It took the lock and has not written its name yet.
        return RunInProgressError(f"another run for {application} has just begun on this host")
    since = holder.since.isoformat(timespec="seconds").replace("+00:00", "Z")
    return RunInProgressError(
        f"process {holder.pid} has been at work for {application} since {since}",
        hint="wait until it ends",
        pid=holder.pid,
        since=since,
    )

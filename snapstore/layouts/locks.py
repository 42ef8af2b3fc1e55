"""File locks of other processes: seen without taking any, and held against them.

Kafka Streams locks `.lock` in its application directory, RocksDB locks `LOCK` in each database;
both with POSIX record locks (`fcntl`).
"""

import errno
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import CaptureError, StoreInUseError

# struct flock of Linux: l_type, l_whence, l_start, l_len, l_pid
_FLOCK = "hhqqi"

# Prints the numbers of the paths that are locked. F_GETLK asks and takes nothing.
_PROBE = """
import fcntl, os, stat, struct, sys
held = []
for number, path in enumerate(sys.stdin.buffer.read().split(b"\\0")):
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        continue
    except OSError as error:
        sys.exit(f"{os.fsdecode(path)}: {error.strerror}")
    if not stat.S_ISREG(os.fstat(file).st_mode):
        sys.exit(f"{os.fsdecode(path)} is not a regular file")
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    if struct.unpack("hhqqi", answer)[0] != fcntl.F_UNLCK:
        held.append(number)
    os.close(file)
print(*held)
"""


def held_locks(paths: Iterable[Path]) -> frozenset[Path]:
    """Return those of the lock files that somebody holds; files that are not there are free.

    A child process asks: closing any descriptor of a file drops every POSIX lock that the closing
    process has on it, so a program that embeds snapstore would lose its own. For the same reason
    the program's own locks are seen too. Raises CaptureError when a file may not be opened.
    """
    asked = list(dict.fromkeys(paths))
    if not asked:
        return frozenset()
    answer = subprocess.run(
        [sys.executable or "python3", "-I", "-S", "-c", _PROBE],
        input=b"\0".join(os.fsencode(path) for path in asked),
        capture_output=True,
        check=False,
    )
    if answer.returncode != 0:
        raise CaptureError(
            "cannot tell whether the application runs: "
            + answer.stderr.decode(errors="backslashreplace").strip(),
            hint="run snapstore as the user of the application",
        )
    return frozenset(asked[int(number)] for number in answer.stdout.split())


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file so that its application cannot start; the file is made and stays.

    An open file description lock: it conflicts with POSIX locks and is not dropped when another
    descriptor of the file is closed. While it is held ``held_locks`` reports it as well. Raises
    StoreInUseError when somebody has the lock.
    """
    if path in held_locks([path]):
        raise _in_use(path)
    file = _open_or_make(path)
    try:
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)
        except OSError as exc:
            if exc.errno in (errno.EAGAIN, errno.EACCES):
                raise _in_use(path) from exc
            raise
        yield
    finally:
        os.close(file)


def _open_or_make(path: Path) -> int:
    """Open the lock file. A new one belongs to whom its folder belongs to: root may be at work."""
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o640)
    except FileExistsError:
        return os.open(path, flags)
    if os.geteuid() == 0:
        folder = path.parent.stat()
        os.fchown(file, folder.st_uid, folder.st_gid)
    return file


def _in_use(path: Path) -> StoreInUseError:
    return StoreInUseError(
        f"an application runs on {path.parent}",
        hint="stop the application first",
        path=str(path.parent),
    )

"""Ask which lock files somebody holds.

Only ever in a child process: closing a file drops every lock that the closing process has on it.
As a program of its own it needs nothing but this file: paths on stdin, numbers on stdout.
"""

import fcntl
import os
import stat
import struct
import sys
from collections.abc import Sequence

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC

# struct flock of Linux: l_type, l_whence, l_start, l_len, l_pid
FLOCK = "hhqqi"


def answer(paths: Sequence[bytes]) -> bytes:
    """Return ``+`` and the numbers of the paths that are locked, or ``-`` and why nobody can tell.

    It ends with a line feed, or is not whole. F_GETLK asks and takes nothing. A file that is not
    there is free.
    """
    held = []
    for number, path in enumerate(paths):
        try:
            if _is_held(path):
                held.append(b"%d" % number)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return b"-%s: %s\n" % (path, (error.strerror or str(error)).encode())
    return b"+" + b" ".join(held) + b"\n"


def _is_held(path: bytes) -> bool:
    file = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "it is not a regular file")
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        told = fcntl.fcntl(file, fcntl.F_GETLK, asked)
        return bool(struct.unpack(FLOCK, told)[0] != fcntl.F_UNLCK)
    finally:
        os.close(file)


if __name__ == "__main__":
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read().split(b"\0")))

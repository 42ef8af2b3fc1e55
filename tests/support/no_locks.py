"""Be on a file system without locks, as far as anybody asks for one but RocksDB."""

import errno
import fcntl
import platform

from tests.support.no_exchange import ALLOW, ERRNO, JUMP_IF_EQUAL, LOAD, RETURN, install

_FCNTL, _FLOCK = {"x86_64": (72, 73), "aarch64": (25, 32)}[platform.machine()]
_NR, _COMMAND = 0, 24
"""Offsets in struct seccomp_data: the system call's number, and its second argument."""


def forbid_locks() -> None:
    """Let flock, F_GETLK and F_OFD_SETLK answer ENOLCK in this process from now on."""
    refuse = (RETURN, 0, 0, ERRNO | errno.ENOLCK)
    install(
        (
            (LOAD, 0, 0, _NR),
            (JUMP_IF_EQUAL, 4, 0, _FLOCK),
            (JUMP_IF_EQUAL, 0, 4, _FCNTL),
            (LOAD, 0, 0, _COMMAND),
            (JUMP_IF_EQUAL, 1, 0, fcntl.F_GETLK),
            (JUMP_IF_EQUAL, 0, 1, fcntl.F_OFD_SETLK),
            refuse,
            (RETURN, 0, 0, ALLOW),
        )
    )

"""Be on a file system that cannot exchange two directories, as NFS cannot."""

import ctypes
import errno
import platform
import struct
from collections.abc import Sequence

_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
_RENAME_EXCHANGE = 2
_NR, _FLAGS = 0, 48
"""Offsets in struct seccomp_data: the system call's number, and its fifth argument."""
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def forbid_exchange() -> None:
    """Let renameat2 answer EINVAL to RENAME_EXCHANGE in this process from now on (seccomp(2))."""
    steps = (
        (LOAD, 0, 0, _NR),
        (JUMP_IF_EQUAL, 0, 3, _RENAMEAT2[platform.machine()]),
        (LOAD, 0, 0, _FLAGS),
        (JUMP_IF_EQUAL, 0, 1, _RENAME_EXCHANGE),
        (RETURN, 0, 0, ERRNO | errno.EINVAL),
        (RETURN, 0, 0, ALLOW),
    )
    install(steps)


def install(steps: Sequence[tuple[int, int, int, int]]) -> None:
    """Have the kernel ask a program, given as classic BPF, before each system call."""
    program = _Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for order in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*order):
            raise OSError(ctypes.get_errno(), "prctl")

"""Be on a file system that cannot exchange two directories, as NFS cannot."""

import ctypes
import errno
import platform
import struct

_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
_RENAME_EXCHANGE = 2
_NR, _FLAGS = 0, 48
"""Offsets in struct seccomp_data: the system call's number, and its fifth argument."""
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def forbid_exchange() -> None:
    """Let renameat2 answer EINVAL to RENAME_EXCHANGE in this process from now on (seccomp(2))."""
    steps = (
        (_LOAD, 0, 0, _NR),
        (_JUMP_IF_EQUAL, 0, 3, _RENAMEAT2[platform.machine()]),
        (_LOAD, 0, 0, _FLAGS),
        (_JUMP_IF_EQUAL, 0, 1, _RENAME_EXCHANGE),
        (_RETURN, 0, 0, _ERRNO | errno.EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    )
    program = _Program(len(steps), b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for order in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0),
    ):
        if libc.prctl(*order):
            raise OSError(ctypes.get_errno(), "prctl")

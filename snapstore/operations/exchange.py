"""Exchange two directories in one step, so that at no moment either name stands for nothing."""

import ctypes
import errno
import os

_RENAME_EXCHANGE = 2
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}


def exchange(first: int, second: int, name: str) -> bool:
    """Exchange what a name stands for in two open folders of one file system.

    False where that cannot be done. By renameat2(2), which Linux has since 3.15 and not every file
    system knows. Raises OSError.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    path = os.fsencode(name)
    if renameat2(first, path, second, path, _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), name)

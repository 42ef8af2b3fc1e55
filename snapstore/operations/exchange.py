"""Exchange two directories in one step, so that at no moment either name stands for nothing."""

import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NOT_HERE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}


def exchange(first: Path, second: Path) -> bool:
    """Exchange what two paths of one file system stand for; False where that cannot be done.

    By renameat2(2), which Linux has since 3.15 and not every file system knows. Raises OSError.
    """
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    paths = (os.fsencode(first), os.fsencode(second))
    if renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(second))

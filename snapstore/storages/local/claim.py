"""Give a complete file its final name unless the name is taken, in one atomic step.

``link(2)`` does it on most file systems. Those without hard links (vfat, exFAT, many CIFS and FUSE
mounts) refuse it; Linux can then rename without replacing (``renameat2`` with
``RENAME_NOREPLACE``). Where neither works there is no safe way, so that file system is refused.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from snapstore.errors import StorageUnfitError

Step = Callable[[Path, Path], None]

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_UNSUPPORTED = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK)


def link(unfinished: Path, final: Path) -> None:
    """Add the final name beside the first one, which is left to the caller to remove."""
    os.link(unfinished, final, follow_symlinks=False)


def rename_without_replacing(unfinished: Path, final: Path) -> None:
    """Raise FileExistsError when the final name is taken, EINVAL or ENOSYS where unsupported."""
    # Imported here: hardly any file system needs it.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(final))
    result = libc.renameat2(
        _AT_FDCWD,
        ctypes.c_char_p(os.fsencode(unfinished)),
        _AT_FDCWD,
        ctypes.c_char_p(os.fsencode(final)),
        ctypes.c_uint(_RENAME_NOREPLACE),
    )
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(final))


STEPS: tuple[Step, ...] = (link, rename_without_replacing)


def claim(unfinished: Path, final: Path, steps: tuple[Step, ...] = STEPS) -> bool:
    """Name the complete file ``final``; False when that name is taken.

    The first of ``steps`` that the file system knows decides. Raises StorageUnfitError when it
    knows none, OSError for anything else that went wrong.
    """
    for step in steps:
        try:
            step(unfinished, final)
        except FileExistsError:
            return _is_ours(unfinished, final)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        else:
            return True
    raise StorageUnfitError(
        f"the file system of {final.parent} can neither link files nor rename without replacing",
        hint="keep the repository on another file system, or in S3",
        path=str(final.parent),
    )


def _is_ours(unfinished: Path, final: Path) -> bool:
    """Tell a name that is taken from one that we took: NFS may lose the reply and ask again."""
    try:
        return final.samefile(unfinished)
    except FileNotFoundError:
        return False

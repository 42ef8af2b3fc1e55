"""Give a complete file its final name unless the name is taken, in one atomic step.

``link(2)`` does it on most file systems. Those without hard links (vfat, exFAT, many CIFS and FUSE
mounts) refuse it; Linux can then rename without replacing (``renameat2`` with
``RENAME_NOREPLACE``). Where neither works there is no safe way, so that file system is refused.
"""

import errno
import os
from collections.abc import Callable

from snapstore.errors import StorageUnfitError
from snapstore.storages.local.tree import Name

Step = Callable[[Name, Name], None]

_RENAME_NOREPLACE = 1
_UNSUPPORTED = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK)


def link(unfinished: Name, final: Name) -> None:
    """Add the final name beside the first one, which is left to the caller to remove."""
    os.link(
        unfinished.name,
        final.name,
        src_dir_fd=unfinished.folder.fd,
        dst_dir_fd=final.folder.fd,
        follow_symlinks=False,
    )


def rename_without_replacing(unfinished: Name, final: Name) -> None:
    """Raise FileExistsError when the final name is taken, EINVAL or ENOSYS where unsupported."""
    # Imported here: hardly any file system needs it.
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(final.path))
    result = libc.renameat2(
        unfinished.folder.fd,
        ctypes.c_char_p(os.fsencode(unfinished.name)),
        final.folder.fd,
        ctypes.c_char_p(os.fsencode(final.name)),
        ctypes.c_uint(_RENAME_NOREPLACE),
    )
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(final.path))


STEPS: tuple[Step, ...] = (link, rename_without_replacing)


def claim(unfinished: Name, final: Name, steps: tuple[Step, ...] = STEPS) -> bool:
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
    path = final.folder.path
    raise StorageUnfitError(
        f"the file system of {path} can neither link files nor rename without replacing",
        hint="keep the repository on another file system, or in S3",
        path=str(path),
    )


def _is_ours(unfinished: Name, final: Name) -> bool:
    """Tell a name that is taken from one that we took: NFS may lose the reply and ask again."""
    there, ours = (each.folder.look(each.name) for each in (final, unfinished))
    return there is not None and ours is not None and os.path.samestat(there, ours)

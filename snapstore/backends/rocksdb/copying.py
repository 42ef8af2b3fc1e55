"""Copy the bytes of an open file, and stop before the disk is full."""

import errno
import os
import shutil
from pathlib import Path

from snapstore.errors import CaptureError, NoSpaceError, StoreChangedError

_CHUNK_BYTES = 1 << 20


def copy_bytes(fd: int, target: Path, size: int, *, min_free_bytes: int) -> None:
    """Copy the first ``size`` bytes of an open file to a new file, whole or not at all.

    Raises NoSpaceError when that would leave less than ``min_free_bytes`` free.
    """
    check_free_space(target.parent, min_free_bytes + size)
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as output:
            position = 0
            while position < size:
                chunk = os.pread(fd, min(_CHUNK_BYTES, size - position), position)
                if not chunk:
                    raise StoreChangedError(
                        f"{target.name} ended after {position} of {size} bytes", file=target.name
                    )
                output.write(chunk)
                position += len(chunk)
        part.rename(target)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise CaptureError(
                f"{target.name} cannot be copied to {target.parent}: {error.strerror}",
                file=target.name,
                path=str(target.parent),
            ) from error
        raise NoSpaceError(
            f"no space left in {target.parent}",
            hint="name another folder for staged copies, or free space",
            path=str(target.parent),
        ) from error
    finally:
        part.unlink(missing_ok=True)


def check_free_space(folder: Path, needed_bytes: int) -> None:
    """Raise NoSpaceError when the disk that holds ``folder`` has less than that free."""
    free = free_bytes(folder)
    if free < needed_bytes:
        raise NoSpaceError(
            f"too little space left on the disk of {folder}",
            hint="free space, or lower min_free_bytes",
            path=str(folder),
            free_bytes=free,
            needed_bytes=needed_bytes,
        )


def free_bytes(folder: Path) -> int:
    """Return what an ordinary user may still write to the disk that holds ``folder``."""
    return shutil.disk_usage(folder).free

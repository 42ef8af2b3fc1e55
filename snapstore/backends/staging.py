"""A folder of snapstore's own on a disk, for as long as a store is held."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import CaptureError

_PREFIX = "snapstore-"


@contextmanager
def staging_folder(parent: str | None, *, of: str) -> Iterator[Path]:
    """Make one in ``parent`` (None: the system's temporary folder), and remove it in the end.

    ``of`` says what it is for. Raises CaptureError when none can be made.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent)
    except OSError as error:
        raise CaptureError(
            f"no folder for {of} can be made: {error.strerror}",
            hint="name a folder that exists and may be written as staging_dir",
            staging_dir=parent,
        ) from error
    with folder as path:
        yield Path(path)

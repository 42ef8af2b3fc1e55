"""Folders for the time of some work, made when something is put there."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import CaptureError


def system_folder() -> Path | None:
    """Return the system's temporary folder; None where none can be written."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return None


@contextmanager
def temporary_folder(parent: Path | str | None, *, of: str, setting: str) -> Iterator[Path]:
    """Make one in ``parent`` (None: where TMPDIR says, or /tmp), and remove it in the end.

    ``of`` says what it is for, and ``setting`` what names another place. Raises CaptureError when
    none can be made: a root file system that is read-only, a full disk.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="snapstore-", dir=parent)
    except OSError as error:
        raise CaptureError(
            f"no folder for {of} can be made: {error.strerror}",
            hint=f"name a folder that may be written: {setting}, or TMPDIR",
            parent=None if parent is None else str(parent),
        ) from error
    with folder as path:
        yield Path(path)

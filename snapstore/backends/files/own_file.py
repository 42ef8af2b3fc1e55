"""A file that nobody writes to, opened for each read: it holds no descriptor."""

import os
from pathlib import Path

from snapstore.errors import SourceDamagedError

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class OwnFile:
    """Implements ByteSource for a copy of ours, or for a file of a store at rest."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        """Return up to ``length`` bytes within the size; raises SourceDamagedError."""
        try:
            fd = os.open(self._path, _FLAGS)
            try:
                return os.pread(fd, max(0, min(length, self._size - position)), position)
            finally:
                os.close(fd)
        except OSError as error:
            raise SourceDamagedError(
                f"{self._path} cannot be read: {error.strerror}", file=str(self._path)
            ) from error

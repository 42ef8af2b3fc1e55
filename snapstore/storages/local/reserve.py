"""Room kept back on the disk of a repository: before anything is freed, marks are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PIECES: Final = 64
_PIECE_BYTES: Final = 4096


class Reserve:
    """Some small files. Each gives the room and the inode of one mark, or of a folder for marks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_filled = False
        self._users = 0

    def fill(self) -> None:
        """Make what is missing, once for this object; on a full disk there is nothing to keep."""
        if self._is_filled:
            return
        self._is_filled = True
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for number in range(PIECES):
                self._fill_piece(self._folder / f"{number:02}")

    def give(self) -> bool:
        """Free one piece while somebody is inside ``used``; False where there is none left."""
        if not self._users:
            return False
        self._is_filled = False
        for number in range(PIECES):
            try:
                (self._folder / f"{number:02}").unlink()
            except OSError:
                continue
            return True
        return False

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let ``give`` give meanwhile; what was given is made up for afterwards."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.fill()

    @staticmethod
    def _fill_piece(piece: Path) -> None:
        try:
            fd = os.open(piece, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return
        try:
            # Random bytes: a file system may keep no room for zeros.
            os.write(fd, os.urandom(_PIECE_BYTES))
        except OSError:
            piece.unlink()
            raise
        finally:
            os.close(fd)

"""Room kept back on the disk of a repository: before anything is freed, marks are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from snapstore.model.folder import Folder
from snapstore.storages.local.location import RESERVE
from snapstore.storages.local.tree import Tree

PIECES: Final = 64
_PIECE_BYTES: Final = 4096
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Reserve:
    """Some small files. Each gives the room and the inode of one mark, or of a folder for marks."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._is_filled = False
        self._users = 0

    def fill(self) -> None:
        """Make what is missing, once for this object; on a full disk there is nothing to keep."""
        if self._is_filled:
            return
        self._is_filled = True
        with suppress(OSError), self._tree.made(RESERVE) as folder:
            for number in range(PIECES):
                _fill_piece(folder, f"{number:02}")

    def give(self) -> bool:
        """Free one piece while somebody is inside ``used``; False where there is none left."""
        if not self._users:
            return False
        self._is_filled = False
        with suppress(OSError), self._tree.folder(RESERVE) as folder:
            for number in range(PIECES):
                try:
                    os.unlink(f"{number:02}", dir_fd=folder.fd)
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


def _fill_piece(folder: Folder, name: str) -> None:
    try:
        fd = os.open(name, _NEW, 0o600, dir_fd=folder.fd)
    except FileExistsError:
        return
    try:
        # Random bytes: a file system may keep no room for zeros.
        os.write(fd, os.urandom(_PIECE_BYTES))
    except OSError:
        os.unlink(name, dir_fd=folder.fd)
        raise
    finally:
        os.close(fd)

"""Write a file so that it is there whole under its name, or not at all, also after a power cut."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from snapstore.storages.local.claim import claim
from snapstore.storages.local.location import UNFINISHED
from snapstore.storages.local.tree import Name, Tree, sync_folder

_FILE_MODE = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnfinishedFile:
    """A complete file that has no key yet, and is made durable before it gets one."""

    def __init__(self, tree: Tree, place: Name, fd: int) -> None:
        self._tree = tree
        self._place = place
        self._fd = fd

    @property
    def modified_s(self) -> float:
        """When it was last written, by the file system's clock, in seconds since 1970."""
        return os.fstat(self._fd).st_mtime

    def publish_new(self, key: str) -> bool:
        """Give it its key; False, and nothing changed, when that is taken."""
        os.fsync(self._fd)
        parent, _, name = key.rpartition("/")
        with self._tree.made(parent) as folder:
            won = claim(self._place, Name(folder, name))
            if won:
                sync_folder(folder)
        return won

    def publish_over(self, key: str) -> None:
        """Give it its key in place of whatever has it."""
        os.fsync(self._fd)
        parent, _, name = key.rpartition("/")
        with self._tree.made(parent) as folder:
            source = self._place
            os.replace(source.name, name, src_dir_fd=source.folder.fd, dst_dir_fd=folder.fd)
            sync_folder(folder)


@contextmanager
def written(tree: Tree, chunks: Iterable[bytes]) -> Iterator[UnfinishedFile]:
    """Write ``chunks`` to a new unfinished file; leaving removes what is left of it there.

    Whatever ``chunks`` raises passes through, and nothing stays.
    """
    with tree.made(UNFINISHED) as folder:
        name = os.urandom(16).hex()
        fd = os.open(name, _NEW, _FILE_MODE, dir_fd=folder.fd)
        try:
            for chunk in chunks:
                _write_all(fd, chunk)
            yield UnfinishedFile(tree, Name(folder, name), fd)
        finally:
            os.close(fd)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder.fd)


def _write_all(fd: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(fd, view) :]

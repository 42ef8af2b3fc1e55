"""Folders of snapstore's own: for links, in memory where there is some, and for copies, on a disk.

A folder of 10,000 links is made in hundredths of a second in memory, and in seconds on a disk on
which others write: the journal of the file system waits for their bytes.
"""

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.temporary import temporary_folder

MEMORY = Path("/dev/shm")
_SETTING = "backends.rocksdb.staging_dir"
_PREFIX = "snapstore-links-"
_LEAST_FREE_BYTES = 16 << 20
_LEAST_FREE_INODES = 100_000
_YOUNG_S = 60


class Rooms(msgspec.Struct, frozen=True):
    """Two folders, which are one where no memory is to be had. ``links`` takes small files, too.

    ``disk`` makes the folder for copies when there is a copy: there rarely is one, and a host may
    have no place for it. It is None where ``links`` is that folder.
    """

    links: Path
    disk: Callable[[], Path] | None

    def inner(self) -> "Rooms":
        """Make folders below them for one database, on the disk alone once memory gets scarce."""
        if self.disk is None or not _has_memory():
            return Rooms(Path(tempfile.mkdtemp(dir=self.copies())), None)
        links = Path(tempfile.mkdtemp(dir=self.links))
        return Rooms(links, partial(_below, self.disk, links.name))

    def copies(self) -> Path:
        """Return the folder for copies; raises CaptureError when it cannot be made."""
        return self.links if self.disk is None else self.disk()


@contextmanager
def open_rooms(staging_dir: str | None) -> Iterator[Rooms]:
    """Make both, with ``staging_dir`` in that, and remove them in the end with all that they hold.

    Raises CaptureError when they cannot be made.
    """
    if staging_dir is not None or not _has_memory():
        with temporary_folder(staging_dir, of="links", setting=_SETTING) as copies:
            yield Rooms(copies, None)
        return
    with _in_memory() as links, ExitStack() as stack:
        lock, made = threading.Lock(), list[Path]()

        def disk() -> Path:
            with lock:
                if not made:
                    made.append(
                        stack.enter_context(temporary_folder(None, of="copies", setting=_SETTING))
                    )
                return made[0]

        yield Rooms(links, disk)


@contextmanager
def open_links(staging_dir: str | None) -> Iterator[Path]:
    """Make a folder for links alone, and remove it in the end; raises CaptureError."""
    in_memory = staging_dir is None and _has_memory()
    with (
        _in_memory()
        if in_memory
        else temporary_folder(staging_dir, of="links", setting=_SETTING) as links
    ):
        yield links


def _below(disk: Callable[[], Path], name: str) -> Path:
    folder = disk() / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _has_memory() -> bool:
    try:
        memory = os.statvfs(MEMORY)
    except OSError:
        return False
    return (
        memory.f_bavail * memory.f_frsize >= _LEAST_FREE_BYTES
        and memory.f_favail >= _LEAST_FREE_INODES
        and os.access(MEMORY, os.W_OK | os.X_OK)
    )


@contextmanager
def _in_memory() -> Iterator[Path]:
    """Make a folder that is locked while it is in use; one that is not was left by a killed run."""
    _remove_left()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=MEMORY))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder)
        os.close(lock)


def _remove_left() -> None:
    """Remove what runs left that were killed; else it would take memory until the next boot."""
    with suppress(OSError), Folder.open(MEMORY) as memory:
        for name in memory.names():
            if name.startswith(_PREFIX):
                # Anybody may take such a name, for a file or a link, too. And a run may end by now.
                with suppress(OSError, UnsafePathError):
                    _remove_if_left(memory, name)


def _remove_if_left(memory: Folder, name: str) -> None:
    with memory.below(name) as folder:
        status = folder.status()
        # It is made, and locked a moment later.
        if status.st_uid != os.geteuid() or time.time() - status.st_ctime < _YOUNG_S:
            return
        fcntl.flock(folder.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        memory.remove_tree(name)

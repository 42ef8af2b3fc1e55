"""A store as it lies on disk, and the plan of its capture."""

import os
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId


class ChangelogPosition(msgspec.Struct, frozen=True):
    """How far a store has got in one changelog partition.

    ``applied_offset`` is inclusive: every record up to and including it is in the files (a hot
    capture may hold more). Reading goes on at ``resume_offset``.
    """

    changelog: ChangelogPartition
    applied_offset: int

    @property
    def resume_offset(self) -> int:
        return self.applied_offset + 1


class StoreLocation(msgspec.Struct, frozen=True, kw_only=True):
    """One store of one task on disk, as a layout found it.

    ``root`` is the folder of the store's own files relative to ``task_dir`` (``rocksdb/counts``;
    ``.`` where they are the same); ``side_files`` are small files beside it that belong to it,
    relative to ``task_dir``. ``generation`` names the on-disk format of the writer, for instance
    ``kafka-streams-4.3``.
    """

    store: StoreId
    layout: str
    backend: str
    store_type: str
    generation: str
    task_dir: Path
    root: str
    side_files: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.task_dir / self.root


class ByteSource(Protocol):
    """Bytes of known size that can be read from any position, by several threads at once."""

    @property
    def size(self) -> int: ...

    def pread(self, length: int, position: int) -> bytes:
        """Return ``length`` bytes at ``position``; fewer only at the end."""
        ...


class BytesSource:
    """Bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        return len(self._content)

    def pread(self, length: int, position: int) -> bytes:
        return self._content[position : position + length]


class DescriptorSource:
    """The first ``size`` bytes of an open file, wherever its name has gone."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._fd, min(length, self._size - position), position)


class FileIdentity(msgspec.Struct, frozen=True):
    """What a hash may be remembered by: valid as long as none of them has changed.

    ``ctime_ns`` catches what the others cannot: other bytes of the same length under a modification
    time that was set back.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int = 0


@runtime_checkable
class WatchedSource(ByteSource, Protocol):
    """A file that somebody else could write to, which nobody is expected to do."""

    def identity_now(self) -> FileIdentity:
        """Say what the file system says of the file now."""
        ...


class CapturedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a capture.

    ``name`` is relative to the task directory, with ``/`` between its parts. ``identity`` is None
    where the bytes are not a whole immutable file. ``inline`` files are small and mutable: they
    travel inside the manifest.
    """

    name: str
    mode: int
    source: ByteSource
    identity: FileIdentity | None = None
    inline: bool = False

    @property
    def size(self) -> int:
        return self.source.size

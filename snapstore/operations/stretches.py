"""One large file that arrives in several stretches at once, and is hashed in order."""

import hashlib
import os
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from snapstore.operations.stage_files import write_all

STRETCH_BYTES = 32 << 20

_CHUNK_BYTES = 256 << 10
_NUMBER = struct.Struct("<Q")


class Stretches:
    """The partial file ``part`` of ``size`` bytes, cut into stretches that are filled apart.

    How far each of them has got stands in a file beside it, so that a later run goes on by byte
    position; that file goes when the whole was read. Neither file is made durable on the way: what
    a power cut leaves of them shows in the hash of the whole. Safe for several threads.
    """

    def __init__(self, part: Path, size: int, stretch_bytes: int) -> None:
        self._part = part
        self._stretch_bytes = stretch_bytes
        self._starts = range(0, size, stretch_bytes)
        self._size = size
        self._lock = threading.Lock()
        self._fd = -1
        self._noted = -1
        self._positions: list[int] = []
        self._digest = hashlib.sha256()
        self._hashed = 0
        self._hashing = False
        self._told = False

    def __len__(self) -> int:
        return len(self._starts)

    def fill(
        self, index: int, read: Callable[[int, int], Iterator[bytes]], check: Callable[[], None]
    ) -> str | None:
        """Write what is missing of one stretch; return the hash of the whole when all is there.

        ``read`` yields the bytes from one position to before another; ``check`` raises to stop.
        Only one call returns the hash, whichever is the last to be needed for it.
        """
        if not self._open():
            return None
        position = self._positions[index]
        for chunk in read(position, self._stop(index)):
            write_all(self._fd, chunk, position)
            position += len(chunk)
            os.pwrite(self._noted, _NUMBER.pack(position), _NUMBER.size * (index + 1))
        with self._lock:
            self._positions[index] = position
        return self._hash_on(check)

    def forget(self) -> None:
        """Remove the note of how far each stretch has got."""
        _note_beside(self._part).unlink(missing_ok=True)

    def sync(self) -> None:
        """Make the bytes durable."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Let go of both files; they stay as they are."""
        with self._lock:
            for fd in (self._fd, self._noted):
                if fd >= 0:
                    os.close(fd)
            self._fd = self._noted = -1

    def _stop(self, index: int) -> int:
        return min(self._starts[index] + self._stretch_bytes, self._size)

    def _open(self) -> bool:
        """Whether there can be something to do: when the hash was told, the file may be gone."""
        with self._lock:
            if self._told or self._fd >= 0:
                return not self._told
            self._noted = os.open(_note_beside(self._part), _FLAGS, 0o600)
            self._fd = os.open(self._part, _FLAGS, 0o600)
            have = os.fstat(self._fd).st_size
            if have > self._size:
                os.ftruncate(self._fd, 0)
                have = 0
            noted = _noted_positions(self._noted, self._stretch_bytes, len(self))
            # Without a note the file was filled from its beginning only.
            told = [have] * len(self) if noted is None else [min(each, have) for each in noted]
            self._positions = [
                max(start, min(position, self._stop(index)))
                for index, (start, position) in enumerate(zip(self._starts, told, strict=True))
            ]
            numbers = (self._stretch_bytes, *self._positions)
            os.pwrite(self._noted, b"".join(map(_NUMBER.pack, numbers)), 0)
            return True

    def _hash_on(self, check: Callable[[], None]) -> str | None:
        """Hash what is there in one piece after what was hashed, unless somebody is at it."""
        ours = False
        while True:
            with self._lock:
                if self._hashing and not ours:
                    return None
                stop = self._whole_up_to()
                self._hashing = ours = stop > self._hashed
                if not ours:
                    if self._hashed < self._size or self._told:
                        return None
                    self._told = True
                    return self._digest.hexdigest()
            while self._hashed < stop:
                check()
                length = min(_CHUNK_BYTES, stop - self._hashed)
                chunk = os.pread(self._fd, length, self._hashed)
                if not chunk:
                    raise OSError(
                        f"{self._part} was cut at byte {self._hashed} while it was filled"
                    )
                self._digest.update(chunk)
                self._hashed += len(chunk)

    def _whole_up_to(self) -> int:
        """Return the end of the complete stretches that follow what was hashed."""
        index = self._hashed // self._stretch_bytes
        while index < len(self) and self._positions[index] == self._stop(index):
            index += 1
        return min(index * self._stretch_bytes, self._size)


_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def _note_beside(part: Path) -> Path:
    return part.with_name(f"{part.name}.at")


def _noted_positions(fd: int, stretch_bytes: int, count: int) -> list[int] | None:
    """Return what was noted for stretches of that length, or None."""
    raw = os.pread(fd, _NUMBER.size * (count + 2), 0)
    if len(raw) != _NUMBER.size * (count + 1):
        return None
    length, *positions = (number for (number,) in _NUMBER.iter_unpack(raw))
    return positions if length == stretch_bytes else None

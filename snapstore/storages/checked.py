"""Read a source of bytes, and raise unless they hash to what was promised."""

import hashlib
from collections.abc import Iterator

from snapstore.errors import SourceDamagedError, StoreChangedError
from snapstore.model.store import ByteSource

READ_BYTES = 1 << 20


class CheckedReader:
    """Reads one stretch of a source in order, and hashes it on the way unless told not to.

    ``key`` is what it will be stored as, for messages.
    """

    def __init__(
        self, source: ByteSource, key: str, start: int, stop: int, *, hashed: bool = True
    ) -> None:
        self._source = source
        self._key = key
        self._stop = stop
        self._digest = hashlib.sha256() if hashed else None
        self.position = start

    @property
    def left(self) -> int:
        return self._stop - self.position

    def next(self, length: int = READ_BYTES) -> bytes:
        """Return the next bytes, up to ``length``; nothing at the end.

        Raises StoreChangedError when the source ends early, SourceDamagedError when it cannot be
        read.
        """
        if not self.left:
            return b""
        try:
            chunk = self._source.pread(min(length, self.left), self.position)
        except OSError as error:
            raise SourceDamagedError(
                f"the file for {self._key} cannot be read at byte {self.position}: "
                f"{error.strerror or error}",
                key=self._key,
                position=self.position,
            ) from error
        if not chunk:
            raise StoreChangedError(
                f"the file for {self._key} ended at byte {self.position} of {self._source.size} "
                "while it was read",
                hint="it was cut while the snapshot ran: try again",
                key=self._key,
                position=self.position,
                size=self._source.size,
            )
        if self._digest is not None:
            self._digest.update(chunk)
        self.position += len(chunk)
        return chunk

    def hexdigest(self) -> str:
        if self._digest is None:
            raise ValueError("these bytes were not hashed")
        return self._digest.hexdigest()


def require_hash(found: str, sha256: str, key: str) -> None:
    """Raise StoreChangedError unless what was read has the hash it was announced with."""
    if found != sha256:
        raise StoreChangedError(
            f"the file for {key} does not hold the bytes it was announced with",
            hint="it changed while the snapshot ran: try again",
            key=key,
            sha256=sha256,
            found=found,
        )


def checked_chunks(source: ByteSource, sha256: str, key: str) -> Iterator[bytes]:
    """Yield the whole source; the last chunk only when everything has the right hash.

    Raises StoreChangedError or SourceDamagedError, as CheckedReader does.
    """
    reader = CheckedReader(source, key, 0, source.size)
    while True:
        chunk = reader.next()
        if not reader.left:
            require_hash(reader.hexdigest(), sha256, key)
        if not chunk:
            return
        yield chunk

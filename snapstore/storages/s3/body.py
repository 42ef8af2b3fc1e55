"""The body of an upload: a stretch of a source, checked while it is sent."""

import base64
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

from botocore.exceptions import BotoCoreError

from snapstore.errors import CaptureError
from snapstore.model.store import ByteSource
from snapstore.storages.checked import READ_BYTES, CheckedReader, require_hash


class SourceBody:
    """What botocore reads an upload from, once per attempt.

    The last bytes are handed over only when all of them have the hash that was announced, so a
    server never gets a whole body that is wrong. After a failure of the source it cannot be
    rewound, which makes botocore give up at once instead of trying again; ``failure`` then says
    why. Setting ``stopped`` ends a transfer that is under way.
    """

    def __init__(
        self,
        source: ByteSource,
        key: str,
        sha256: str,
        *,
        start: int = 0,
        stop: int | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self.failure: CaptureError | None = None
        self.size = (source.size if stop is None else stop) - start
        self._source = source
        self._key = key
        self._sha256 = sha256
        self._start = start
        self._stopped = stopped or threading.Event()
        self._at_end = False
        self._pending = memoryview(b"")
        self._rewind()

    def as_file(self) -> IO[bytes]:
        """Return itself under the type that botocore's signatures ask for."""
        return cast("IO[bytes]", self)

    @contextmanager
    def failures_first(self) -> Iterator[None]:
        """Raise ``failure`` in place of what botocore made of it."""
        try:
            yield
        except BotoCoreError as error:
            if self.failure is not None:
                raise self.failure from error
            raise

    def read(self, length: int = -1) -> bytes:
        if self._stopped.is_set():
            raise InterruptedError("the upload was given up")
        if length < 0:
            length = self.size
        if not self._pending:
            self._pending = memoryview(self._next())
        piece = bytes(self._pending[:length])
        self._pending = self._pending[length:]
        return piece

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        if self.failure is not None or self._stopped.is_set():
            raise io.UnsupportedOperation("the source of this upload failed")
        if whence == io.SEEK_END and position == 0:
            self._at_end = True
            return self.size
        if whence != io.SEEK_SET or position != 0:
            raise io.UnsupportedOperation("an upload starts over from its first byte")
        self._rewind()
        return 0

    def tell(self) -> int:
        if self._at_end:
            return self.size
        return self._reader.position - self._start - len(self._pending)

    def _rewind(self) -> None:
        self._at_end = False
        self._pending = memoryview(b"")
        self._reader = CheckedReader(self._source, self._key, self._start, self._start + self.size)

    def _next(self) -> bytes:
        try:
            chunk = self._reader.next(READ_BYTES)
            if not self._reader.left:
                require_hash(self._reader.hexdigest(), self._sha256, self._key)
        except CaptureError as error:
            self.failure = error
            raise
        return chunk


def header(sha256: str) -> str:
    """Return a hash in hex the way ``x-amz-checksum-sha256`` wants it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode("ascii")

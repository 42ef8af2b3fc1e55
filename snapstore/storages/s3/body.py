"""The body of an upload: a stretch of a source, checked while it is sent."""

import base64
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, cast

from botocore.exceptions import BotoCoreError, ClientError

from snapstore.errors import CaptureError
from snapstore.model.store import ByteSource
from snapstore.storages.checked import CheckedReader, require_hash
from snapstore.storages.s3.errors import status_of

_PIECE_BYTES = 256 << 10


class SourceBody:
    """What botocore reads an upload from, once per attempt.

    With ``hashed`` the last bytes are handed over only when all of them have the hash that was
    announced, so a server never gets a whole body that is wrong; without it, that is left to a
    server that is known to refuse such a body. After a failure of the source it cannot be
    rewound, which makes botocore give up at once instead of trying again; ``failure`` then says
    why. Setting ``stopped`` ends a transfer that is under way; ``moved`` is called for each piece.
    """

    def __init__(
        self,
        source: ByteSource,
        key: str,
        sha256: str,
        *,
        start: int = 0,
        stop: int | None = None,
        hashed: bool = True,
        stopped: threading.Event | None = None,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.failure: CaptureError | None = None
        self.size = (source.size if stop is None else stop) - start
        self._source = source
        self._key = key
        self._sha256 = sha256
        self._start = start
        self._hashed = hashed
        self._stopped = stopped or threading.Event()
        self._moved = moved
        self._at_end = False
        self._rewind()

    def as_file(self) -> IO[bytes]:
        """Return itself under the type that botocore's signatures ask for."""
        return cast("IO[bytes]", self)

    @contextmanager
    def failures_first(self) -> Iterator[None]:
        """Raise what is wrong with the source in place of what botocore or the server made of it.

        A body that the server refused is hashed now if it was not while it was sent.
        """
        try:
            yield
        except ClientError as error:
            if status_of(error) == 400 and not self._hashed:
                self._require_announced()
            raise
        except BotoCoreError as error:
            if self.failure is not None:
                raise self.failure from error
            raise

    def read(self, length: int = -1) -> bytes:
        """Return the next piece, whatever ``length`` asks for.

        urllib3 asks for 16 KiB at a time and sends all that it is given: larger pieces spare a
        third of the time that the processor needs for an upload.
        """
        del length
        self._moved()
        if self._stopped.is_set():
            raise InterruptedError("the upload was given up")
        return self._next()

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
        return self._reader.position - self._start

    def _rewind(self) -> None:
        self._at_end = False
        stop = self._start + self.size
        self._reader = CheckedReader(
            self._source, self._key, self._start, stop, hashed=self._hashed
        )

    def _require_announced(self) -> None:
        reader = CheckedReader(self._source, self._key, self._start, self._start + self.size)
        while reader.next():
            pass
        require_hash(reader.hexdigest(), self._sha256, self._key)

    def _next(self) -> bytes:
        try:
            chunk = self._reader.next(_PIECE_BYTES)
            if self._hashed and not self._reader.left:
                require_hash(self._reader.hexdigest(), self._sha256, self._key)
        except CaptureError as error:
            self.failure = error
            raise
        return chunk


def header(sha256: str) -> str:
    """Return a hash in hex the way ``x-amz-checksum-sha256`` wants it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode("ascii")

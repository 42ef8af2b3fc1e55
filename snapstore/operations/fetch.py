"""Fetch blobs into files: several at a time, verified as they arrive, resumed by position."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec

from snapstore.errors import (
    BlobCorruptError,
    BlobMissingError,
    StorageError,
)
from snapstore.operations.rate_limit import Pace, RateLimit
from snapstore.operations.stage_files import os_errors, write_all
from snapstore.operations.stopping import Stop, WorkStopped, until_failed
from snapstore.operations.stretches import STRETCH_BYTES, Stretches
from snapstore.ports import ObjectStorage
from snapstore.repository import blobs, keys

ARCHIVE_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""S3 storage classes whose objects cannot be read before somebody has them restored."""

_CHUNK_BYTES = 1 << 20


class BlobToFetch(msgspec.Struct, frozen=True, kw_only=True):
    """One blob and the file it goes to. ``size`` and ``sha256`` are what it must turn out to be."""

    blob: str
    sha256: str
    size: int
    part: Path


def fetch_all(
    storage: ObjectStorage,
    wanted: Sequence[BlobToFetch],
    *,
    parallel: int,
    limit: RateLimit | None,
    advanced: Callable[[BlobToFetch, int], None],
    fetched: Callable[[BlobToFetch], None],
    stretch_bytes: int = STRETCH_BYTES,
) -> None:
    """Fetch every blob into its partial file; ``fetched`` is called once its hash was right.

    A blob of more than two stretches is fetched in several of them at once. Both callbacks run in
    the calling threads of the pool, one at a time. The first error stops the others; what has
    arrived stays, and the next call goes on from there. Raises BlobMissingError, BlobCorruptError,
    StorageError, NoSpaceError.
    """
    stop = Stop()
    turn = threading.Lock()

    def telling(blob: BlobToFetch) -> Callable[[int], None]:
        pace = Pace(limit, blob.size, stop.sleep)

        def tell(count: int) -> None:
            stop.check()
            pace.passed(count)
            with turn:
                advanced(blob, count)

        return tell

    def whole(blob: BlobToFetch) -> None:
        fetch_blob(storage, blob, advanced=telling(blob))
        with turn:
            fetched(blob)

    def stretch(blob: BlobToFetch, stretches: Stretches, index: int) -> None:
        if fetch_stretch(storage, blob, stretches, index, advanced=telling(blob), check=stop.check):
            with turn:
                fetched(blob)

    with ExitStack() as held:
        tasks: list[Callable[[], None]] = []
        for blob in wanted:
            if blob.size <= 2 * stretch_bytes:
                tasks.append(partial(whole, blob))
                continue
            cut = Stretches(blob.part, blob.size, stretch_bytes)
            held.callback(cut.close)
            tasks += [partial(stretch, blob, cut, index) for index in range(len(cut))]
        with ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="fetch") as pool:
            futures = [pool.submit(task) for task in tasks]
            try:
                until_failed(futures)
            finally:
                stop.order()
                for future in futures:
                    future.cancel()
    for error in _errors(futures):
        if not isinstance(error, WorkStopped):
            raise error


def _errors(futures: Sequence[Future[None]]) -> Iterator[BaseException]:
    for future in futures:
        if not future.cancelled() and (error := future.exception()) is not None:
            yield error


def fetch_stretch(
    storage: ObjectStorage,
    blob: BlobToFetch,
    stretches: Stretches,
    index: int,
    *,
    advanced: Callable[[int], None],
    check: Callable[[], None],
) -> bool:
    """Complete one stretch of a blob's partial file; True when that completed and verified it all.

    If the whole has the wrong hash, the blob is fetched once more, from its beginning.
    """

    def read(start: int, stop: int) -> Iterator[bytes]:
        check()
        if start == stop:
            return
        for chunk in read_or_explain(storage, blob.blob, start=start, stop=stop):
            yield chunk
            # The bytes are written by now.
            advanced(len(chunk))

    with os_errors(blob.part):
        sha256 = stretches.fill(index, read, check)
        if sha256 is None:
            return False
        stretches.forget()
        if sha256 == blob.sha256:
            stretches.sync()
        stretches.close()
    if sha256 != blob.sha256:
        fetch_blob(storage, blob, advanced=advanced, attempts=(2,))
    return True


def fetch_blob(
    storage: ObjectStorage,
    blob: BlobToFetch,
    *,
    advanced: Callable[[int], None],
    attempts: tuple[int, ...] = (1, 2),
) -> None:
    """Complete the partial file of one blob and verify its hash.

    Bytes that are there already are hashed, not fetched. If the whole then has the wrong hash, the
    file is fetched once more from its beginning: a crash may have left zeros where bytes were
    written but never reached the disk. ``attempts`` without the first go without what is there.
    """
    for attempt in attempts:
        with os_errors(blob.part), _open(blob.part) as fd:
            if attempt > 1:
                os.ftruncate(fd, 0)
            if _complete(storage, blob, fd, advanced) == blob.sha256:
                if blob.size > _CHUNK_BYTES:
                    # Made durable while others are fetched, not all of them at the end.
                    os.fdatasync(fd)
                return
    with os_errors(blob.part):
        blob.part.unlink()
    raise BlobCorruptError(
        f"blob {blob.blob} does not hash to its name", blob=blob.blob, size_bytes=blob.size
    )


def _complete(
    storage: ObjectStorage, blob: BlobToFetch, fd: int, advanced: Callable[[int], None]
) -> str:
    """Write what is missing at the end of the file, and return the hash of the whole."""
    have = os.fstat(fd).st_size
    if have > blob.size:
        os.ftruncate(fd, 0)
        have = 0
    digest = hashlib.sha256()
    position = 0
    while position < have:
        if not (chunk := os.pread(fd, min(_CHUNK_BYTES, have - position), position)):
            break
        digest.update(chunk)
        position += len(chunk)
    if position < blob.size:
        for chunk in read_or_explain(storage, blob.blob, start=position, stop=blob.size):
            digest.update(chunk)
            write_all(fd, chunk, position)
            position += len(chunk)
            advanced(len(chunk))
    return digest.hexdigest()


def read_or_explain(storage: ObjectStorage, blob: str, *, start: int, stop: int) -> Iterator[bytes]:
    """Yield bytes of a blob; say what is wrong with it when they cannot be had.

    Raises BlobMissingError, BlobCorruptError for one of another size, and StorageError, which names
    the storage class of a blob that was moved to an archive.
    """
    try:
        yield from blobs.read_blob(storage, blob, start=start, stop=stop)
    except StorageError as error:
        stat = storage.stat(keys.blob(blob))
        if stat is None:
            raise BlobMissingError(f"blob {blob} is missing", blob=blob) from error
        if stat.size < stop:
            raise BlobCorruptError(
                f"blob {blob} holds {stat.size} bytes instead of {stop}",
                blob=blob,
                size_bytes=stat.size,
            ) from error
        if stat.storage_class in ARCHIVE_CLASSES:
            raise StorageError(
                f"blob {blob} lies in storage class {stat.storage_class} and cannot be read",
                hint="restore the object in the storage first, and keep lifecycle rules off blobs/",
                blob=blob,
                storage_class=stat.storage_class,
            ) from error
        raise


@contextmanager
def _open(part: Path) -> Iterator[int]:
    fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)

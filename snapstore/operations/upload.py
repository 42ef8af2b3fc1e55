"""Take captured files into the repository: hash, then send what it lacks."""

import hashlib
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed, wait

import msgspec

from snapstore.errors import SourceDamagedError, StoreChangedError
from snapstore.model.snapshot import FileEntry
from snapstore.model.store import ByteSource, BytesSource, CapturedFile, WatchedSource
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.stopping import Stop
from snapstore.ports import Clock
from snapstore.repository import BlobWriter, HashCache

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 1 << 20
_INLINE_BYTES = 64 << 10
_INLINE_TOTAL_BYTES = 16 << 20
"""Of one manifest, which is read whole and in base64: what is more becomes blobs."""


Progress = Callable[[int, bool], None]
"""Told how many bytes are done, and whether they had to be moved."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the repository holds; ``new`` if its bytes were sent by this run."""

    entry: FileEntry
    new: bool


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the repository holds: the names of their blobs by hash, and their sizes.

    A file of one of those sizes may be one of them, so it is hashed before it is sent.
    """

    blobs: Mapping[str, str] = {}
    sizes: frozenset[int] = frozenset()


class Uploader:
    """Sends the files of one run, several at a time, through one pool and one rate limit.

    Memory: each thread of the pool holds a small file (up to 1 MiB) or one piece of a large one.
    ``cache`` None: every file is hashed.
    """

    def __init__(
        self,
        pool: Executor,
        blobs: BlobWriter,
        *,
        cache: HashCache | None,
        limit: RateLimit | None,
        clock: Clock,
    ) -> None:
        self._pool = pool
        self._blobs = blobs
        self._cache = cache
        self._limit = limit
        self._clock = clock

    def send(
        self,
        files: Sequence[CapturedFile],
        known: Known,
        *,
        trust_cache: bool,
        advanced: Progress,
        stop: Stop,
    ) -> Generator[tuple[CapturedFile, StoredFile]]:
        """Yield each file once it is stored, in whatever order; begun in the order given.

        Closing it early, or the first error, stops the others, and returns only when no thread
        reads from ``files`` any more. The smallest of the ``inline`` files travel in their entries,
        up to 16 MiB; the others are sent as blobs. Raises StoreChangedError, SourceDamagedError,
        WorkStopped, and what the storage raises.
        """
        part = stop.part()
        inline = _inline(files)
        futures: dict[Future[StoredFile], CapturedFile] = {}
        try:
            for file in files:
                task = self._pool.submit(
                    self._one, file, known, trust_cache, advanced, part, file.name in inline
                )
                futures[task] = file
            for done in as_completed(futures):
                yield futures[done], done.result()
        finally:
            part.order()
            wait([future for future in futures if not future.cancel()])

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return which of those blobs are not there (any more), asking for several at a time."""
        unseen = self._blobs.unseen(names)
        stored = self._pool.map(self._blobs.is_stored, unseen)
        return [name for name, there in zip(unseen, stored, strict=True) if not there]

    def _one(
        self,
        file: CapturedFile,
        known: Known,
        trust_cache: bool,
        advanced: Progress,
        stop: Stop,
        inline: bool,
    ) -> StoredFile:
        stop.check()
        source: ByteSource = _Careful(file, stop)
        now_ns = int(self._clock().timestamp() * 1e9)
        sha256 = self._remembered(file, now_ns) if trust_cache else None
        if sha256 is None:
            if file.size <= _IN_MEMORY_BYTES:
                # One read for both hash and upload: the two cannot differ.
                source = BytesSource(b"".join(_chunks(source)))
            elif self._blobs.copies and trust_cache and file.size not in known.sizes:
                return self._copy(file, source, known, advanced, stop, now_ns)
            sha256 = self._hash(file, source, now_ns)
        if inline:
            advanced(file.size, False)
            content = source.pread(file.size, 0)
            return StoredFile(entry=_entry(file, sha256, inline=content), new=False)
        told = _Told(source, advanced, self._limit, stop)
        stored = self._blobs.put(told, sha256, known.blobs)
        told.finish()
        return StoredFile(entry=_entry(file, sha256, blob=stored.name), new=stored.new)

    def _copy(
        self,
        file: CapturedFile,
        source: ByteSource,
        known: Known,
        advanced: Progress,
        stop: Stop,
        now_ns: int,
    ) -> StoredFile:
        """Hash and store in one reading a file that is hardly there yet."""
        told = _Told(source, advanced, self._limit, stop)
        stored = self._blobs.copy(told, known.blobs, called=file.name)
        told.finish()
        self._remember(file, stored.sha256, now_ns)
        return StoredFile(entry=_entry(file, stored.sha256, blob=stored.name), new=stored.new)

    def _remembered(self, file: CapturedFile, now_ns: int) -> str | None:
        if self._cache is None or file.identity is None:
            return None
        return self._cache.get(file.identity, now_ns=now_ns)

    def _hash(self, file: CapturedFile, source: ByteSource, now_ns: int) -> str:
        digest = hashlib.sha256()
        for chunk in _chunks(source):
            digest.update(chunk)
        self._remember(file, digest.hexdigest(), now_ns)
        return digest.hexdigest()

    def _remember(self, file: CapturedFile, sha256: str, now_ns: int) -> None:
        """Note the hash of a file that was just read; raises StoreChangedError if it changed."""
        if file.identity is None:
            return
        if isinstance(file.source, WatchedSource):
            found, was = file.source.identity_now(), file.identity
            if (found.size, found.mtime_ns) != (was.size, was.mtime_ns):
                raise StoreChangedError(
                    f"{file.name} was written to while it was read",
                    hint="files of its kind are never written to again: look at what writes there",
                    file=file.name,
                )
        if self._cache is not None:
            self._cache.add(file.identity, sha256, now_ns=now_ns)


class _Careful:
    """A captured file whose reader can be stopped, and which never ends early in silence."""

    def __init__(self, file: CapturedFile, stop: Stop) -> None:
        self._file = file
        self._stop = stop

    @property
    def size(self) -> int:
        return self._file.size

    def pread(self, length: int, position: int) -> bytes:
        self._stop.check()
        try:
            chunk = self._file.source.pread(length, position)
        except OSError as error:
            raise SourceDamagedError(
                f"{self._file.name} cannot be read at byte {position}: {error.strerror or error}",
                file=self._file.name,
            ) from error
        if not chunk and position < self.size and length:
            raise StoreChangedError(
                f"{self._file.name} ended at byte {position} of {self.size} while it was read",
                file=self._file.name,
            )
        return chunk


class _Told:
    """A source that is being sent: paced, and counted once however often a piece is sent again."""

    def __init__(
        self,
        source: ByteSource,
        advanced: Progress,
        limit: RateLimit | None,
        stop: Stop,
    ) -> None:
        self._source = source
        self._advanced = advanced
        self._limit = limit
        self._stop = stop
        self._lock = threading.Lock()
        self._left = source.size

    @property
    def size(self) -> int:
        return self._source.size

    def pread(self, length: int, position: int) -> bytes:
        self._stop.check()
        chunk = self._source.pread(length, position)
        if self._limit:
            self._limit.passed(len(chunk))
        self._count(len(chunk), moved=True)
        return chunk

    def finish(self) -> None:
        """Count what needed no sending."""
        self._count(self._left, moved=False)

    def _count(self, amount: int, *, moved: bool) -> None:
        with self._lock:
            amount = min(amount, self._left)
            self._left -= amount
        self._advanced(amount, moved)


def _inline(files: Sequence[CapturedFile]) -> set[str]:
    """Return the names of the files that travel in the manifest: the same for the same files."""
    names: set[str] = set()
    total = 0
    for file in sorted(files, key=lambda each: (each.size, each.name)):
        total += file.size if file.inline else 0
        if total > _INLINE_TOTAL_BYTES or file.size > _INLINE_BYTES:
            break
        if file.inline:
            names.add(file.name)
    return names


def _chunks(source: ByteSource) -> Iterator[bytes]:
    position = 0
    while position < source.size:
        chunk = source.pread(min(_CHUNK_BYTES, source.size - position), position)
        yield chunk
        position += len(chunk)


def _entry(
    file: CapturedFile, sha256: str, *, blob: str | None = None, inline: bytes | None = None
) -> FileEntry:
    return FileEntry(
        name=file.name,
        size=file.size,
        mode=file.mode & 0o777,
        sha256=sha256,
        blob=blob,
        inline=inline,
    )

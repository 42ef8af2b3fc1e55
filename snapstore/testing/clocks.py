"""Time as a test says: a clock that is moved by hand, also backwards, and a storage dated by it."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from snapstore.model.store import ByteSource
from snapstore.ports import Clock, ObjectStat, ObjectStorage, UnfinishedUpload


class HandClock:
    """A clock that stands still until it is moved; call it for the time."""

    def __init__(self, now: datetime = datetime(2026, 5, 4, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        """Move it on, or back where ``by`` is negative."""
        self.now += by


class Dates:
    """When the objects of one storage were made, shared by all that use it.

    A ``clock`` of its own: that of the server. Objects that nobody saw being made have no date
    here, and keep that of the storage below.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._made: dict[str, datetime] = {}
        self._deleted: dict[str, tuple[datetime, ObjectStat]] = {}
        self._lock = threading.Lock()

    def note(self, key: str) -> None:
        with self._lock:
            self._made[key] = self.clock()

    def note_deleted(self, stats: Iterable[ObjectStat]) -> None:
        with self._lock:
            for stat in stats:
                self._made.pop(stat.key, None)
                self._deleted[stat.key] = (self.clock(), stat)

    def deleted_since(self, then: datetime, prefix: str) -> list[ObjectStat]:
        """Return what was there at that time and is not any more."""
        with self._lock:
            return [
                stat
                for key, (when, stat) in self._deleted.items()
                if when > then
                and stat.modified_at <= then
                and key.startswith(prefix)
                and key not in self._made
            ]

    def of(self, stat: ObjectStat) -> ObjectStat:
        with self._lock:
            made = self._made.get(stat.key)
        return stat if made is None else msgspec.structs.replace(stat, modified_at=made)


class DatedStorage:
    """Implements ObjectStorage by ``inner``; its objects are dated by ``dates``.

    With a ``lag`` its listings are that much behind: they lack what is younger, and still have what
    was deleted since. All other calls answer by what is there now.
    """

    def __init__(
        self, inner: ObjectStorage, dates: Dates, *, lag: timedelta = timedelta(0)
    ) -> None:
        self.inner = inner
        self.url = inner.url
        self._dates = dates
        self._lag = lag

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        self.inner.put(key, body, if_absent=if_absent)
        self._dates.note(key)

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        stored = self.inner.put_file(key, source, sha256=sha256)
        if stored:
            self._dates.note(key)
        return stored

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        return self.inner.get(key, limit_bytes=limit_bytes)

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        yield from self.inner.read(key, start=start, stop=stop)

    def stat(self, key: str) -> ObjectStat | None:
        stat = self.inner.stat(key)
        return None if stat is None else self._dates.of(stat)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        listed = [self._dates.of(stat) for stat in self.inner.list(prefix)]
        if self._lag:
            then = self._dates.clock() - self._lag
            listed = [stat for stat in listed if stat.modified_at <= then]
            listed += self._dates.deleted_since(then, prefix)
            listed.sort(key=lambda stat: stat.key)
        yield from (stat for stat in listed if stat.key > start_after)

    def delete(self, keys: Sequence[str]) -> None:
        stats = [stat for key in keys if (stat := self.stat(key)) is not None]
        self.inner.delete(keys)
        self._dates.note_deleted(stats)

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        yield from self.inner.unfinished_uploads()

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        self.inner.abort_upload(upload)

    def checks_checksums(self, key: str) -> bool:
        return self.inner.checks_checksums(key)

    def close(self) -> None:
        self.inner.close()

"""Apply changelog records to a versioned store, as Kafka Streams applies them while it runs.

The rules are those of `RocksDBVersionedStore.doPut` (KIP-889, Kafka 4.0 to 4.3). A key's latest
value lies in one place, older versions lie in the segment of the time until which they were valid;
all segments share one column family, each key behind 8 bytes of its segment's number (-1 for the
latest values).

Two things are in Kafka Streams' memory only and are found again by a scan here: its stream time,
and which segments exist. (Its own restoration forgets both, so it may keep other versions.) A
deletion at the very time of the latest version leaves no trace there, so the stream time may be
found too early; then versions are kept that would have expired, and none is lost.
"""

from collections.abc import Callable, Iterable
from struct import Struct as Layout

import msgspec

from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.version_run import (
    Version,
    VersionRun,
    decode_run,
    deletion_at,
    encode_run,
    valid_to_ms_of,
)

_PREFIX = Layout(">q")
_LATEST = -1
_LATEST_PREFIX = _PREFIX.pack(_LATEST)
_NOT_STARTED_MS = -1


class VersionedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the application made the store; neither number can be read from its files."""

    history_retention_ms: int
    segment_interval_ms: int

    @classmethod
    def with_default_interval(cls, history_retention_ms: int) -> "VersionedOptions":
        """As `RocksDbVersionedKeyValueBytesStoreSupplier` chooses it when none is given."""
        if history_retention_ms <= 60_000:
            interval = max(history_retention_ms // 3, 2_000)
        elif history_retention_ms <= 300_000:
            interval = max(history_retention_ms // 5, 20_000)
        elif history_retention_ms <= 3_600_000:
            interval = max(history_retention_ms // 12, 60_000)
        else:
            interval = max(history_retention_ms // 24, 300_000)
        return cls(history_retention_ms=history_retention_ms, segment_interval_ms=interval)


class VersionedWrites(msgspec.Struct, frozen=True, kw_only=True):
    """What to write: entries by their raw key (None: delete), and key prefixes to empty."""

    entries: dict[bytes, bytes | None]
    dropped_prefixes: tuple[bytes, ...]


class VersionedReplay:
    """Turns records into writes. ``read`` looks a raw key up in the store as it is written.

    Call ``take`` whenever it suits: what was not taken is remembered and seen by later records.
    """

    def __init__(
        self,
        options: VersionedOptions,
        read: Callable[[bytes], bytes | None],
        entries: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """``entries`` are all of the store, in any order.

        Raises NotReplayableError when they contradict the segment interval, SourceDamagedError
        when they are not of a versioned store.
        """
        self._retention_ms = options.history_retention_ms
        self._interval_ms = options.segment_interval_ms
        self._read = read
        self._segments: set[int] = set()
        self._stream_time_ms = _NOT_STARTED_MS
        self._pending: dict[bytes, bytes | None] = {}
        self._dropped: list[int] = []
        for key, value in entries:
            self._see(key, value)

    def apply(self, record: ChangelogRecord) -> None:
        """Put the record's value (None: delete) at the record's time; too late ones are dropped."""
        key, value, time_ms = record.key, record.value, record.timestamp_ms
        if key is None or time_ms < self._stream_time_ms - self._retention_ms:
            return
        self._stream_time_ms = max(self._stream_time_ms, time_ms)
        self._drop_expired()
        self._put(key, Version(time_ms, value))

    def take(self) -> VersionedWrites:
        """Return the writes since the last call."""
        writes = VersionedWrites(
            entries=self._pending,
            dropped_prefixes=tuple(_PREFIX.pack(segment) for segment in self._dropped),
        )
        self._pending, self._dropped = {}, []
        return writes

    def _put(self, key: bytes, version: Version) -> None:
        latest = self._latest(key)
        if latest is not None and version.valid_from_ms >= latest.valid_from_ms:
            self._replace_latest(key, latest, version)
            return
        next_ms = None if latest is None else latest.valid_from_ms
        for segment in self._segments_from(version.valid_from_ms):
            run = self._run(segment, key)
            if run is None:
                continue
            if run.valid_to_ms <= version.valid_from_ms:
                break
            if run.oldest_ms <= version.valid_from_ms:
                self._put_within(segment, run, key, version)
                return
            if run.oldest_ms < self._stream_time_ms - self._retention_ms:
                return
            next_ms = run.oldest_ms
        if next_ms is None:
            self._put_newest(key, version)
        else:
            self._put_before(key, version, next_ms)

    def _replace_latest(self, key: bytes, latest: Version, version: Version) -> None:
        time_ms = version.valid_from_ms
        if time_ms > latest.valid_from_ms:
            self._append(key, latest, time_ms)
        self._set_latest(key, version)

    def _put_within(self, segment: int, run: VersionRun, key: bytes, version: Version) -> None:
        """The version belongs between others of a run."""
        time_ms = version.valid_from_ms
        index = run.index_at(time_ms)
        current = run.versions[index]
        if current.valid_from_ms == time_ms:
            self._set_run(segment, key, run.with_replaced(index, version))
        elif self._segment_of(time_ms) == segment:
            self._set_run(segment, key, run.with_inserted(index, version))
        else:
            # The version before it is now valid until an earlier time: it moves to that segment.
            self._append(key, current, time_ms)
            self._set_run(segment, key, run.with_replaced(index, version))

    def _put_newest(self, key: bytes, version: Version) -> None:
        """Nothing later is known of the key."""
        if version.value is not None:
            self._set_latest(key, version)
            return
        time_ms = version.valid_from_ms
        segment = self._live_segment(time_ms)
        if segment is None:
            return
        run = self._run(segment, key)
        if run is None:
            self._set_run(segment, key, deletion_at(time_ms))
        elif run.valid_to_ms != time_ms:
            deleted = Version(run.valid_to_ms, None)
            self._set_run(segment, key, run.with_latest(deleted, time_ms))

    def _put_before(self, key: bytes, version: Version, next_ms: int) -> None:
        """The version is valid until ``next_ms``, and first or last in the segment of that time."""
        segment = self._live_segment(next_ms)
        if segment is None:
            return
        run = self._run(segment, key)
        if run is None:
            run = VersionRun(next_ms, (version,))
        elif run.valid_to_ms <= version.valid_from_ms:
            run = run.with_latest(version, next_ms)
        else:
            run = run.with_earliest(version)
        self._set_run(segment, key, run)

    def _append(self, key: bytes, version: Version, valid_to_ms: int) -> None:
        """Move a version that has become older into the segment of the time it is valid until."""
        segment = self._live_segment(valid_to_ms)
        if segment is None:
            return
        run = self._run(segment, key)
        if run is None:
            run = VersionRun(valid_to_ms, (version,))
        else:
            run = run.with_latest(version, valid_to_ms)
        self._set_run(segment, key, run)

    def _latest(self, key: bytes) -> Version | None:
        content = self._get(_LATEST_PREFIX + key)
        return None if content is None else _decode_latest(content)

    def _set_latest(self, key: bytes, version: Version) -> None:
        value = version.value
        content = None if value is None else _PREFIX.pack(version.valid_from_ms) + value
        self._pending[_LATEST_PREFIX + key] = content

    def _run(self, segment: int, key: bytes) -> VersionRun | None:
        content = self._get(_PREFIX.pack(segment) + key)
        return None if content is None else decode_run(content)

    def _set_run(self, segment: int, key: bytes, run: VersionRun) -> None:
        self._pending[_PREFIX.pack(segment) + key] = encode_run(run)

    def _get(self, raw_key: bytes) -> bytes | None:
        return self._pending[raw_key] if raw_key in self._pending else self._read(raw_key)

    def _segment_of(self, time_ms: int) -> int:
        return time_ms // self._interval_ms

    def _oldest_live_segment(self) -> int:
        return self._segment_of(self._stream_time_ms - self._retention_ms)

    def _live_segment(self, time_ms: int) -> int | None:
        """The segment of that time, from now on in use; None where it is too old to be kept."""
        segment = self._segment_of(time_ms)
        if segment < self._oldest_live_segment():
            return None
        self._segments.add(segment)
        return segment

    def _segments_from(self, time_ms: int) -> list[int]:
        first = self._segment_of(time_ms)
        return sorted((one for one in self._segments if one >= first), reverse=True)

    def _drop_expired(self) -> None:
        oldest = self._oldest_live_segment()
        for segment in [one for one in self._segments if one < oldest]:
            prefix = _PREFIX.pack(segment)
            self._segments.remove(segment)
            self._dropped.append(segment)
            for key in [key for key in self._pending if key.startswith(prefix)]:
                del self._pending[key]

    def _see(self, key: bytes, value: bytes) -> None:
        """Learn from an entry of the store which segments exist and how late it is."""
        if len(key) < _PREFIX.size or len(value) < _PREFIX.size:
            raise SourceDamagedError("an entry is too short for a versioned store")
        (segment,) = _PREFIX.unpack_from(key)
        if segment == _LATEST:
            time_ms = _decode_latest(value).valid_from_ms
        else:
            time_ms = valid_to_ms_of(value)
            if self._segment_of(time_ms) != segment:
                raise NotReplayableError(
                    f"segments of {self._interval_ms} ms do not fit the files: a version valid "
                    f"until {time_ms} lies in segment {segment}",
                    hint="configure the store's segment interval as the application sets it",
                )
            self._segments.add(segment)
        self._stream_time_ms = max(self._stream_time_ms, time_ms)


def _decode_latest(content: bytes) -> Version:
    return Version(int(_PREFIX.unpack_from(content)[0]), content[_PREFIX.size :])

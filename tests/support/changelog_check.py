"""What a store must hold, worked out from its changelog alone: it knows nothing of snapstore.

The topic is a linear history of the store, so what its files held at a recorded offset, with the
records after that offset applied, must equal the history from its beginning. Both sides are
compared as rows that are still alive: windows and versions that have expired may be there or not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.support.topic import TopicRecord

DAY_MS = 24 * 3600 * 1000
HOUR_MS = 3600 * 1000

Rows = Mapping[bytes, bytes]
Content = dict[bytes, bytes]


class Kind(Protocol):
    """How records become rows of one kind of store."""

    def content(self, rows: Rows) -> Content:
        """Turn the rows of the files into comparable ones."""
        ...

    def entry(self, record: TopicRecord) -> tuple[bytes, bytes | None]:
        """Return what a record sets (None: takes away)."""
        ...

    def alive(self, content: Content) -> Content:
        """Leave out what may have expired by the time of the newest row."""
        ...


@dataclass(frozen=True)
class KeyValue:
    """One row a key. `timestamped`: the record's time stands before the value."""

    timestamped: bool = False

    def content(self, rows: Rows) -> Content:
        return dict(rows)

    def entry(self, record: TopicRecord) -> tuple[bytes, bytes | None]:
        assert record.key is not None
        if record.value is None or not self.timestamped:
            return record.key, record.value
        return record.key, record.timestamp.to_bytes(8, "big") + record.value

    def alive(self, content: Content) -> Content:
        return content


@dataclass(frozen=True)
class Segmented(KeyValue):
    """Rows of time segments, dropped by whole segments when they are older than the retention.

    The time in a key begins `from_end` bytes before its end.
    """

    from_end: int = 12
    retention_ms: int = 2 * DAY_MS
    segment_ms: int = DAY_MS

    def alive(self, content: Content) -> Content:
        if not content:
            return {}
        newest = max(self._time(key) for key in content)
        least = (newest - self.retention_ms) // self.segment_ms
        return {
            key: value
            for key, value in content.items()
            if self._time(key) // self.segment_ms >= least
        }

    def _time(self, key: bytes) -> int:
        start = len(key) - self.from_end
        return int.from_bytes(key[start : start + 8], "big")


@dataclass(frozen=True)
class Versioned:
    """One row a version: the key and its time; an empty byte before the value, or a tombstone.

    In the files the newest version of a key stands alone, under eight bytes ff and the key; older
    ones stand in lists by the hour in which they ended (the form is described in Kafka Streams'
    RocksDBVersionedStoreSegmentValueFormatter).
    """

    retention_ms: int = DAY_MS
    segment_ms: int = HOUR_MS

    def content(self, rows: Rows) -> Content:
        found: Content = {}
        for row, value in rows.items():
            key = row[8:]
            if row[:8] == b"\xff" * 8:
                found[key + value[:8]] = b"+" + value[8:]
                continue
            found.setdefault(key + value[:8], b"-")  # what ended them stands elsewhere, if at all
            for time, version in _older_versions(value):
                found[key + time] = b"-" if version is None else b"+" + version
        return found

    def entry(self, record: TopicRecord) -> tuple[bytes, bytes | None]:
        assert record.key is not None
        name = record.key + record.timestamp.to_bytes(8, "big")
        return name, b"-" if record.value is None else b"+" + record.value

    def alive(self, content: Content) -> Content:
        """A version lives until the segment in which it ended expires; tombstones are none."""
        if not content:
            return {}
        newest = max(_long(name, len(name) - 8) for name in content)
        least = (newest - self.retention_ms) // self.segment_ms
        ordered = sorted(content)
        kept = {}
        for name, following in zip(ordered, [*ordered[1:], b""], strict=True):
            ends = _long(following, len(following) - 8) if following[:-8] == name[:-8] else None
            if content[name] != b"-" and (ends is None or ends // self.segment_ms > least):
                kept[name] = content[name]
        return kept


PLAIN = KeyValue()
TIMESTAMPED = KeyValue(timestamped=True)
WINDOW = Segmented(timestamped=True)
SESSION = Segmented(from_end=16)
VERSIONED = Versioned()
KINDS: Mapping[str, Kind] = {
    "plain": PLAIN,
    "table": TIMESTAMPED,
    "count": TIMESTAMPED,
    "window": WINDOW,
    "session": SESSION,
    "versioned": VERSIONED,
}


@dataclass(frozen=True)
class Capture:
    """Rows as they lay in the files, and the offset up to which they are said to be complete."""

    rows: Rows
    applied_offset: int


class Truth:
    """What a store must hold by its history alone, at ever later moments of it."""

    def __init__(self, kind: Kind, history: Sequence[TopicRecord]) -> None:
        self._kind = kind
        self._history = history
        self._content: Content = {}
        self._length = 0

    def at(self, length: int) -> Content:
        """Return what the first so many records make; no fewer than the last time."""
        assert length >= self._length
        _apply(self._kind, self._content, self._history[self._length : length])
        self._length = length
        return self._kind.alive(self._content)


def differences(
    kind: Kind, capture: Capture, history: Sequence[TopicRecord], wanted: Content | None = None
) -> list[str]:
    """Compare the capture and the records after it with `wanted`: what the whole history makes.

    `history` begins with the topic's first record and reaches to the newest that the rows may
    hold. Returns a line for each row that is missing, left over, or another.
    """
    content = kind.content(capture.rows)
    _apply(kind, content, (one for one in history if one.offset > capture.applied_offset))
    held = kind.alive(content)
    if wanted is None:
        wanted = Truth(kind, history).at(len(history))
    return [
        f"{key!r}: {held.get(key)!r}, not {wanted.get(key)!r}"
        for key in sorted(held.keys() | wanted.keys())
        if held.get(key) != wanted.get(key)
    ]


def _apply(kind: Kind, content: Content, records: Iterable[TopicRecord]) -> None:
    for record in records:
        key, value = kind.entry(record)
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value


def _older_versions(value: bytes) -> list[tuple[bytes, bytes | None]]:
    """Decode a list: when its newest version ended, when its oldest began, then each one's time
    and length. Those with the length -1 are tombstones; the values come in the opposite order.
    """
    oldest = value[8:16]
    lengths: list[tuple[bytes, int]] = []
    position = 16
    while not lengths or lengths[-1][0] != oldest:
        length = int.from_bytes(value[position + 8 : position + 12], "big", signed=True)
        lengths.append((value[position : position + 8], length))
        position += 12
    versions: list[tuple[bytes, bytes | None]] = []
    for time, length in reversed(lengths):
        versions.append((time, None if length < 0 else value[position : position + length]))
        position += max(length, 0)
    assert position == len(value), "bytes behind the last version"
    return versions


def _long(content: bytes, start: int) -> int:
    return int.from_bytes(content[start : start + 8], "big")

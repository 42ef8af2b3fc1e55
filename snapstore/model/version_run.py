"""Versions of one key in one segment of a versioned store, and their bytes.

The layout is that of Kafka Streams' `RocksDBVersionedStoreSegmentValueFormatter` (KIP-889): the
time until which the newest version is valid, the time of the oldest version, time and length of
each version (newest first; length -1 for a deletion), then the values, oldest first. Numbers are
big-endian; times are 8 bytes, lengths 4.
"""

from struct import Struct as Layout

import msgspec

from snapstore.errors import SourceDamagedError

_HEAD = Layout(">qq")
_ENTRY = Layout(">qi")
_DELETED = -1


class Version(msgspec.Struct, frozen=True):
    """A value (None: deleted) and the time from which it is valid."""

    valid_from_ms: int
    value: bytes | None


class VersionRun(msgspec.Struct, frozen=True):
    """Versions without a gap, newest first; the newest is valid until ``valid_to_ms``.

    A run that begins and ends at the same time is *degenerate*: it only says that the key was
    deleted then.
    """

    valid_to_ms: int
    versions: tuple[Version, ...]

    @property
    def oldest_ms(self) -> int:
        return self.versions[-1].valid_from_ms

    @property
    def degenerate(self) -> bool:
        return self.valid_to_ms == self.oldest_ms

    def index_at(self, time_ms: int) -> int:
        """Return the index of the version that is valid at a time within the run."""
        return next(i for i, v in enumerate(self.versions) if v.valid_from_ms <= time_ms)

    def valid_to_of(self, index: int) -> int:
        return self.valid_to_ms if index == 0 else self.versions[index - 1].valid_from_ms

    def with_inserted(self, index: int, version: Version) -> "VersionRun":
        versions = (*self.versions[:index], version, *self.versions[index:])
        return VersionRun(self.valid_to_ms, versions)

    def with_replaced(self, index: int, version: Version) -> "VersionRun":
        versions = (*self.versions[:index], version, *self.versions[index + 1 :])
        return VersionRun(self.valid_to_ms, versions)

    def with_earliest(self, version: Version) -> "VersionRun":
        if self.degenerate:
            return VersionRun(self.valid_to_ms, (version,))
        return VersionRun(self.valid_to_ms, (*self.versions, version))

    def with_latest(self, version: Version, valid_to_ms: int) -> "VersionRun":
        """Add a version after the others; what it overlaps is cut off, a gap is a deletion."""
        run = self.truncated(version.valid_from_ms)
        if run.valid_to_ms == version.valid_from_ms:
            older = () if run.degenerate else run.versions
        elif run.degenerate:
            older = (Version(run.valid_to_ms, None),)
        else:
            older = (Version(run.valid_to_ms, None), *run.versions)
        return VersionRun(valid_to_ms, (version, *older))

    def truncated(self, time_ms: int) -> "VersionRun":
        """Cut off what lies at or after a time: the trace of a write that was not finished."""
        if time_ms >= self.valid_to_ms:
            return self
        if time_ms <= self.oldest_ms:
            return deletion_at(time_ms)
        versions = tuple(v for v in self.versions if v.valid_from_ms < time_ms)
        return VersionRun(time_ms, versions)


def deletion_at(time_ms: int) -> VersionRun:
    """Return the degenerate run of that time."""
    return VersionRun(time_ms, (Version(time_ms, None),))


def encode_run(run: VersionRun) -> bytes:
    parts = [_HEAD.pack(run.valid_to_ms, run.oldest_ms)]
    for version in run.versions:
        size = _DELETED if version.value is None else len(version.value)
        parts.append(_ENTRY.pack(version.valid_from_ms, size))
    parts += [version.value or b"" for version in reversed(run.versions)]
    return b"".join(parts)


def decode_run(content: bytes) -> VersionRun:
    """Raises SourceDamagedError when the bytes are no run."""
    valid_to_ms = _time_at(content, 0)
    oldest_ms = _time_at(content, 8)
    versions: list[Version] = []
    position, end = _HEAD.size, len(content)
    while not versions or versions[-1].valid_from_ms != oldest_ms:
        if position + _ENTRY.size > end:
            raise _damaged(content)
        valid_from_ms, size = _ENTRY.unpack_from(content, position)
        position += _ENTRY.size
        start = end - max(size, 0)
        if start < position:
            raise _damaged(content)
        versions.append(Version(valid_from_ms, None if size < 0 else content[start:end]))
        end = start
    if position != end:
        raise _damaged(content)
    return VersionRun(valid_to_ms, tuple(versions))


def valid_to_ms_of(content: bytes) -> int:
    """Return until when the newest version of an encoded run is valid."""
    return _time_at(content, 0)


def _time_at(content: bytes, position: int) -> int:
    if len(content) < _HEAD.size:
        raise _damaged(content)
    return int.from_bytes(content[position : position + 8], "big", signed=True)


def _damaged(content: bytes) -> SourceDamagedError:
    return SourceDamagedError(
        f"{len(content)} bytes of a versioned store are no list of versions",
        hint="the store is of another format, or damaged",
    )

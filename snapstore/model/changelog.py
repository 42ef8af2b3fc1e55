"""What a changelog partition holds, and the records read from it."""

import hashlib
from datetime import datetime
from struct import Struct as Layout

import msgspec

from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import RecordMark

_LENGTH = Layout(">q")
_ABSENT = -1

Headers = tuple[tuple[str, bytes | None], ...]


class ChangelogRecord(msgspec.Struct, frozen=True, gc=False):
    """One record of a changelog partition; ``value`` is None in a tombstone.

    ``timestamp_ms`` is in milliseconds since 1970, -1 where the record has none.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers = ()
    leader_epoch: int | None = None


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """A changelog partition as the brokers described it at ``observed_at`` or later.

    Records lie at offsets from ``log_start`` to before ``log_end``, the last stable offset: what
    open transactions hold begins there and ends before ``high_watermark``. Where both are equal, no
    transaction was open, however much was being written. ``end_leader_epoch`` is that of the
    partition's leader. ``cleanup_policy`` is as Kafka writes it: ``compact``, ``delete`` or
    ``compact,delete``. ``retention_ms`` and ``segment_ms`` are None where unlimited.
    """

    changelog: ChangelogPartition
    cluster_id: str
    topic_id: str
    partition_count: int
    log_start: int
    log_end: int
    high_watermark: int
    end_leader_epoch: int | None
    cleanup_policy: str
    delete_retention_ms: int
    retention_ms: int | None
    min_compaction_lag_ms: int
    segment_ms: int
    observed_at: datetime

    @property
    def compacted(self) -> bool:
        return is_compacted(self.cleanup_policy)


class TailReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of the offsets from ``start`` to before ``stop``.

    An offset without a record was compacted away, holds a transaction marker or an aborted
    record: the log does not tell which.
    """

    start: int
    stop: int
    records: int

    @property
    def missing(self) -> int:
        return self.stop - self.start - self.records

    @property
    def gap_free(self) -> bool:
        """Every offset of the range held a record, so nothing was compacted away."""
        return self.missing == 0


def is_compacted(cleanup_policy: str) -> bool:
    """Whether a topic of that ``cleanup.policy`` loses records that newer ones supersede."""
    return "compact" in cleanup_policy.split(",")


def mark(record: ChangelogRecord) -> RecordMark:
    """Return what the record will be recognised by."""
    return RecordMark(
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        sha256=fingerprint(record),
    )


def fingerprint(record: ChangelogRecord) -> str:
    """Return the SHA-256, in hex, over key, value, headers and timestamp.

    Hashed are the timestamp, key, value and the number of headers, then name and value of each:
    numbers as 8 bytes big-endian, bytes behind their length, what is absent as the length -1.
    """
    digest = hashlib.sha256(_LENGTH.pack(record.timestamp_ms))
    digest.update(_framed(record.key))
    digest.update(_framed(record.value))
    digest.update(_LENGTH.pack(len(record.headers)))
    for name, value in record.headers:
        digest.update(_framed(name.encode()))
        digest.update(_framed(value))
    return digest.hexdigest()


def _framed(content: bytes | None) -> bytes:
    if content is None:
        return _LENGTH.pack(_ABSENT)
    return _LENGTH.pack(len(content)) + content

"""A snapshot as the repository keeps it."""

from typing import Literal

import msgspec

from snapstore.model.accepted import Danger
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.moment import Moment
from snapstore.model.store import ChangelogPosition

FORMAT = 1

Source = Literal["closed", "running", "changelog"]
StoreStatus = Literal["open", "closed", "transactional"]
ProcessingGuarantee = Literal["at_least_once", "exactly_once"]
FoundBy = Literal["configured", "files", "changelog"]


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a manifest.

    ``name`` is relative to the task directory. ``sha256`` is of the content, in hex. The bytes are
    in the blob called ``blob`` (the same hash, or ``<sha256>.<run>`` where that name was swept),
    or in ``inline``; exactly one of the two is given.
    """

    name: str
    size: int
    mode: int
    sha256: str
    blob: str | None = None
    inline: bytes | None = None


class RecordMark(msgspec.Struct, frozen=True, kw_only=True):
    """A record seen in the log, to be recognised later. Times in milliseconds since 1970."""

    offset: int
    leader_epoch: int | None = None
    timestamp_ms: int | None = None
    sha256: str | None = None


class Deletion(msgspec.Struct, frozen=True, array_like=True):
    """A key whose last record was a tombstone, and the offset of that tombstone."""

    key: bytes
    offset: int


class NotedDeletions(msgspec.Struct, frozen=True, kw_only=True):
    """Deletions after a snapshot in one changelog partition, at most one for each key."""

    changelog: ChangelogPartition
    deletions: tuple[Deletion, ...]


class NotedTail(msgspec.Struct, frozen=True, kw_only=True):
    """What was known, at ``observed_at``, of the records from the resume offset to before ``stop``.

    The high watermark was ``stop`` or less at that time. All keys whose last record in between was
    a tombstone are known: so many as ``deletions``, listed in the manifest. Once they are deleted
    in the restored files, compaction may take those tombstones away; later ones stay for
    ``delete_retention_ms`` from ``observed_at`` on.
    """

    stop: int
    observed_at: Moment
    delete_retention_ms: int
    deletions: int


class Fence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What must still be true of one changelog partition for the snapshot to be replayed on.

    ``applied`` is the record at the applied offset; ``end_offset`` and ``last`` were read after the
    capture, after ``observed_at``. ``end_offset`` is the last stable offset; what open transactions
    held lay between it and ``high_watermark``. ``behind_since`` is T0: a wall time at which the
    high watermark was known to be at or below the resume offset. None means not known, and never
    counts as safe. ``tail`` may be later than T0, and counts only for those who delete in the
    restored files what it tells of: a reader that does not know of it goes by T0.
    """

    cluster_id: str
    topic_id: str
    partition_count: int
    end_offset: int
    applied: RecordMark | None = None
    last: RecordMark | None = None
    end_leader_epoch: int | None = None
    high_watermark: int | None = None
    observed_at: Moment | None = None
    behind_since: Moment | None = None
    delete_retention_ms: int | None = None
    cleanup_policy: str = ""
    tail: NotedTail | None = None


class Position(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One changelog partition of a snapshot with the fence taken there, if Kafka was configured.

    ``accepted`` are dangers that an operator accepted when the snapshot was restored: it is only
    set where a host remembers what it has restored.
    """

    position: ChangelogPosition
    fence: Fence | None = None
    accepted: tuple[Danger, ...] = ()


class Description(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a snapshot is of, and how it was made.

    ``positions`` is empty for a store without a changelog. ``databases`` are the folders, relative
    to the task directory, that hold one RocksDB each. ``source`` is ``running``, too, for files
    that were not closed and that no application held any more: ``killed`` tells those. ``status``
    is how the databases mark themselves, None where they have no mark; ``guarantee`` is the
    application's `processing.guarantee` as far as it mattered and was found. ``complete`` is False
    for a store that was made from a changelog whose first records were gone: it lacks what only
    they held. ``rocksdb_version``
    wrote the files, in tables of no newer than ``table_format``.
    """

    store: StoreId
    layout: str
    backend: str
    store_type: str
    generation: str
    root: str
    databases: tuple[str, ...]
    positions: tuple[Position, ...]
    captured_at: Moment
    source: Source
    instance: str
    run: str
    writer: str
    tags: dict[str, str] = {}
    status: StoreStatus | None = None
    killed: bool = False
    guarantee: ProcessingGuarantee | None = None
    guarantee_found_by: FoundBy | None = None
    complete: bool = True
    rocksdb_version: str | None = None
    table_format: int | None = None

    @property
    def applied_offset(self) -> int | None:
        """Of the only position; None where the store has none or several."""
        if len(self.positions) != 1:
            return None
        return self.positions[0].position.applied_offset


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All files of one capture. The hash of its encoding is the snapshot's id.

    ``deletions`` are those that the fences tell of (see ``NotedTail``).
    """

    format: int
    description: Description
    files: tuple[FileEntry, ...]
    deletions: tuple[NotedDeletions, ...] = ()

    def deletions_in(self, changelog: ChangelogPartition) -> tuple[Deletion, ...]:
        """Return those of one changelog partition."""
        return next((one.deletions for one in self.deletions if one.changelog == changelog), ())


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A catalog entry: a manifest that was published.

    ``size_bytes`` counts all files; ``new_bytes`` and ``new_files`` count what the repository
    lacked before.
    """

    format: int
    id: str
    description: Description
    files: int
    size_bytes: int
    new_files: int
    new_bytes: int

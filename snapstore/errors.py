"""Every error that snapstore raises on purpose.

    SnapstoreError(message, *, hint=None, **facts)
    ├── ConfigError                    configuration file, environment, combination of options
    │   └── PluginError                unknown name, broken import, a name taken twice
    ├── NotFoundError                  looked, and it is not there
    │   ├── RepositoryNotFoundError
    │   ├── SnapshotNotFoundError
    │   ├── StoreNotFoundError
    │   ├── ObjectNotFoundError        a key that the storage does not hold
    │   └── AmbiguousRefError          a reference that fits several snapshots
    ├── ConflictError                  something else is there already
    │   ├── RepositoryExistsError
    │   ├── ObjectExistsError          a put-if-absent found the key taken
    │   ├── TargetNotEmptyError        restore would overwrite what is there
    │   └── RunInProgressError         another run holds the same work
    ├── RefusedError                   possible, but not safe
    │   ├── StoreInUseError            the application runs on the directory
    │   ├── UnknownOffsetError         the files do not say which offset they hold
    │   ├── ExactlyOnceHotError        a running exactly-once store may hold aborted writes
    │   ├── UncheckedChangelogError    nothing proved the snapshot against its changelog
    │   ├── TopicRecreatedError        same name, other topic
    │   ├── ChangelogGoneError         the topic or partition does not exist
    │   ├── ChangelogTruncatedError    records after the snapshot are gone from the log's start
    │   ├── LogDivergedError           the log's end was cut back, or a record differs
    │   ├── TombstoneHorizonError      deletions after the snapshot may be compacted away
    │   ├── PartitionCountError        keys have moved to other partitions
    │   ├── NotReplayableError         snapstore cannot replay this store type
    │   ├── WrongGenerationError       the target's version cannot open these files
    │   ├── InMemoryStoreError         no application loads such a store from files
    │   ├── StorageUnfitError          the storage ignores conditional puts or checksums
    │   └── UnsafePathError            a name that leads outside the target
    ├── CaptureError                   the source cannot be read as one consistent store
    │   ├── AccessDeniedError          this user has no right to read it: final
    │   ├── StoreUnsupportedError      only its application can open it, which is no damage: final
    │   ├── StoreChangedError          it changed under the reader: trying again may help
    │   └── SourceDamagedError         its files are broken or missing
    ├── IntegrityError                 stored bytes are not what they should be
    │   ├── BlobMissingError
    │   ├── BlobCorruptError
    │   ├── ManifestInvalidError
    │   └── FormatUnsupportedError     written by a newer snapstore
    ├── UnavailableError               no answer: network, throttling, time-outs
    │   ├── StorageError
    │   ├── CredentialsError           the answer is no: credentials, rights, bucket, region: final
    │   ├── KafkaError
    │   └── NoSpaceError               the disk is full
    └── PartialFailureError            some items failed, the others are done; carries the report

After an UnavailableError or a CaptureError trying again may help, except where the tree says final:
then the same run fails until somebody has changed something, and it ends with another exit code.

Messages are one sentence without a final stop; the hint is what to do next; facts are shown as
``key=value`` and travel in JSON.
"""

from typing import ClassVar


class SnapstoreError(Exception):
    """Base of the tree.

    ``code`` is stable and part of the JSON contract; ``facts`` are JSON-representable values.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts


class ConfigError(SnapstoreError):
    """Configuration file, environment, combination of options."""

    code = "config"


class PluginError(ConfigError):
    """Unknown name, broken import, a name taken twice."""

    code = "plugin"


class NotFoundError(SnapstoreError):
    """Looked, and it is not there."""

    code = "not_found"


class RepositoryNotFoundError(NotFoundError):
    """No repository at that URL."""

    code = "repository_not_found"


class SnapshotNotFoundError(NotFoundError):
    """No snapshot fits the reference."""

    code = "snapshot_not_found"


class StoreNotFoundError(NotFoundError):
    """No such store, task or application."""

    code = "store_not_found"


class ObjectNotFoundError(NotFoundError):
    """A key that the storage does not hold."""

    code = "object_not_found"


class AmbiguousRefError(NotFoundError):
    """A reference that fits several snapshots."""

    code = "ambiguous_ref"


class ConflictError(SnapstoreError):
    """Something else is there already."""

    code = "conflict"


class RepositoryExistsError(ConflictError):
    """A repository is there already."""

    code = "repository_exists"


class ObjectExistsError(ConflictError):
    """A put-if-absent found the key taken."""

    code = "object_exists"


class TargetNotEmptyError(ConflictError):
    """Restore would overwrite what is there."""

    code = "target_not_empty"


class RunInProgressError(ConflictError):
    """Another run holds the same work."""

    code = "run_in_progress"


class RefusedError(SnapstoreError):
    """Possible, but not safe."""

    code = "refused"


class StoreInUseError(RefusedError):
    """The application runs on the directory."""

    code = "store_in_use"


class UnknownOffsetError(RefusedError):
    """The files do not say which offset they hold."""

    code = "unknown_offset"


class ExactlyOnceHotError(RefusedError):
    """A running exactly-once store may hold aborted writes."""

    code = "exactly_once_hot"


class UncheckedChangelogError(RefusedError):
    """Nothing proved the snapshot against its changelog."""

    code = "unchecked_changelog"


class TopicRecreatedError(RefusedError):
    """Same name, other topic."""

    code = "topic_recreated"


class ChangelogGoneError(RefusedError):
    """The topic or partition does not exist."""

    code = "changelog_gone"


class ChangelogTruncatedError(RefusedError):
    """Records after the snapshot are gone from the log's start."""

    code = "changelog_truncated"


class LogDivergedError(RefusedError):
    """The log's end was cut back, or a record differs."""

    code = "log_diverged"


class TombstoneHorizonError(RefusedError):
    """Deletions after the snapshot may be compacted away."""

    code = "tombstone_horizon"


class PartitionCountError(RefusedError):
    """Keys have moved to other partitions."""

    code = "partition_count"


class NotReplayableError(RefusedError):
    """Snapstore cannot replay this store type."""

    code = "not_replayable"


class WrongGenerationError(RefusedError):
    """The target's version cannot open these files."""

    code = "wrong_generation"


class InMemoryStoreError(RefusedError):
    """No application loads such a store from files: it is filled from the changelog."""

    code = "in_memory_store"


class StorageUnfitError(RefusedError):
    """The storage ignores conditional puts or checksums."""

    code = "storage_unfit"


class ClockDiffersError(RefusedError):
    """The clock of this host is too far from the storage's."""

    code = "clock_differs"


class UnsafePathError(RefusedError):
    """A name that leads outside the target."""

    code = "unsafe_path"


class CaptureError(SnapstoreError):
    """The source cannot be read as one consistent store."""

    code = "capture"


class AccessDeniedError(CaptureError):
    """The user of this process has no right to read a file or folder of the store."""

    code = "access_denied"


class StoreUnsupportedError(CaptureError):
    """Its database needs what only the application brings: a comparator, other folders, ..."""

    code = "store_unsupported"


class StoreChangedError(CaptureError):
    """It changed under the reader: trying again may help."""

    code = "store_changed"


class SourceDamagedError(CaptureError):
    """Its files are broken or missing."""

    code = "source_damaged"


class IntegrityError(SnapstoreError):
    """Stored bytes are not what they should be."""

    code = "integrity"


class BlobMissingError(IntegrityError):
    """A snapshot names bytes that the storage does not hold."""

    code = "blob_missing"


class BlobCorruptError(IntegrityError):
    """Bytes that do not hash to their name."""

    code = "blob_corrupt"


class ManifestInvalidError(IntegrityError):
    """A manifest or catalog entry that cannot be what snapstore wrote."""

    code = "manifest_invalid"


class FormatUnsupportedError(IntegrityError):
    """Written by a newer snapstore."""

    code = "format_unsupported"


class UnavailableError(SnapstoreError):
    """No answer: network, throttling, time-outs. Trying again may help."""

    code = "unavailable"


class StorageError(UnavailableError):
    """The storage could not be reached, or failed."""

    code = "storage"


class CredentialsError(UnavailableError):
    """Missing, wrong or expired credentials, a missing right, a wrong bucket or region.

    Final: it is the same until somebody corrects it. A service that hands out credentials and does
    not answer is no CredentialsError.
    """

    code = "credentials"


class KafkaError(UnavailableError):
    """The brokers could not be reached, or failed."""

    code = "kafka"


class NoSpaceError(UnavailableError):
    """The disk is full."""

    code = "no_space"


class PartialFailureError(SnapstoreError):
    """Some items failed, the others are done; carries the report."""

    code = "partial_failure"

"""What the parts promise each other.

Adapters implement these protocols; operations know nothing else of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from snapstore.model.changelog import ChangelogRecord, PartitionState, TailReport
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.report import Event
from snapstore.model.snapshot import Description, RecordMark
from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts
from snapstore.model.store import ByteSource, CapturedFile, ChangelogPosition, StoreLocation

Listener = Callable[[Event], None]
Clock = Callable[[], datetime]


class ObjectStat(msgspec.Struct, frozen=True, kw_only=True):
    """An object without its bytes. ``modified_at`` is by the storage's own clock."""

    key: str
    size: int
    modified_at: datetime
    storage_class: str | None = None


class UnfinishedUpload(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of an upload that was never completed."""

    key: str
    upload_id: str
    started_at: datetime


class ObjectStorage(Protocol):
    """Bytes by key. Keys are relative to the repository's URL and hold only safe characters.

    Every method may raise StorageError (retryable), CredentialsError (not; a bucket that does not
    exist included) or NoSpaceError, all after the storage's own retries, and, where a folder is
    missing, RepositoryNotFoundError. Methods are safe to call from several threads.
    """

    url: str

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        """Store ``body`` whole, or not at all.

        With ``if_absent``, raises ObjectExistsError and changes nothing when the key is taken; of
        several that race for one key exactly one succeeds.
        """
        ...

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        """Store a content-named file unless its key is taken; True if it was stored.

        ``sha256`` is the hex hash of the whole source; the storage checks what arrives against it.
        Raises CaptureError when the source ends early, cannot be read or has another hash (nothing
        is left behind then), and BlobCorruptError when what has the key is of another size.
        """
        ...

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        """Return the object whole.

        Raises ObjectNotFoundError, or ManifestInvalidError when it is larger than ``limit_bytes``.
        """
        ...

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``stop``, in order; short reads are resumed.

        Raises ObjectNotFoundError, or StorageError when they cannot be had in full.
        """
        ...

    def stat(self, key: str) -> ObjectStat | None:
        """Return the object's facts, or None when the key is free."""
        ...

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        """Yield all objects whose key begins with ``prefix``.

        Those of one folder come sorted by key; the order of folders is the storage's own (SeaweedFS
        lists ``a/x`` before ``a-b``, AWS after it). With ``start_after``, a key of the folder that
        ``prefix`` names, only what comes after it.
        """
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; a key that is free already is no error.

        Tries every key; raises StorageError with ``failed`` (the keys) when some would not go.
        """
        ...

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        """Yield the uploads below this URL that were begun and never completed."""
        ...

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Remove its bytes; one that is gone already is no error."""
        ...

    def checks_checksums(self, key: str) -> bool:
        """Whether bytes that do not have the SHA-256 sent with them are refused on arrival.

        Tried out at ``key``, which must be free and is free again afterwards. False means that
        bytes changed on the way would be stored and be noticed only when they are read.
        """
        ...

    def close(self) -> None: ...


class StoreView(Protocol):
    """Read-only sight of the databases of one store, as one moment left them."""

    @property
    def databases(self) -> tuple[str, ...]:
        """Folders relative to the task directory, each one database; sorted."""
        ...

    def families(self, database: str) -> tuple[str, ...]:
        """Names of the column families (one called ``default`` where the store has none)."""
        ...

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        """All of one small family. Raises SourceDamagedError when a block cannot be read."""
        ...

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        """Every pair in key order; raises SourceDamagedError at a block that cannot be read."""
        ...


class Capture(Protocol):
    """The files of one store, held still while they are read. ``view`` sees the same bytes."""

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        """Those that may die first come first."""
        ...

    @property
    def view(self) -> StoreView: ...

    def release(self, file: CapturedFile) -> None:
        """The file's bytes are stored: let go of them."""
        ...


class StoreBackend(Protocol):
    """Knows one store type."""

    name: str

    def capture(self, location: StoreLocation) -> AbstractContextManager[Capture]:
        """Hold the store still and verify that it opens; leaving frees everything.

        Raises StoreChangedError (try again), SourceDamagedError, or StoreNotFoundError when there
        is nothing to capture. The source is only read.
        """
        ...

    def open_view(self, task_dir: Path, root: str) -> AbstractContextManager[StoreView]:
        """Open a store that nobody writes to, for reading; its folder is left as it was."""
        ...

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Put (None: delete) entries of one family and make them durable in the files.

        Only for databases that snapstore itself has staged; no other table is rewritten.
        """
        ...


Pair = tuple[bytes, bytes | None]
"""A key and its value; None deletes the key."""


class StoreWriter(StoreView, Protocol):
    """The databases of one store, opened for writing; what is read is what was written.

    Whatever a crash leaves of a database is what a number of whole ``write`` calls left there.
    Every method raises CaptureError, or NoSpaceError when the disk is full.
    """

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order."""
        ...

    def get(self, database: str, family: str, key: bytes) -> bytes | None: ...

    def write(
        self,
        database: str,
        pairs: Mapping[str, Iterable[Pair]],
        *,
        emptied: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Write all of it or nothing, by family: keys with a prefix in ``emptied`` go first."""
        ...

    def create(self, database: str, families: Sequence[str]) -> None:
        """Make a database with these families."""
        ...

    def drop(self, database: str) -> None:
        """Remove a database with all that is in it."""
        ...

    def flush(self) -> None:
        """Make everything durable, each database as a whole."""
        ...


@runtime_checkable
class WritableBackend(StoreBackend, Protocol):
    """A store type whose stores can be written."""

    def open_writer(self, task_dir: Path, root: str) -> AbstractContextManager[StoreWriter]:
        """Open a store that nobody else writes to; its folder need not be there.

        Leaving makes durable what was written.
        """
        ...


class FileNote(msgspec.Struct, frozen=True, kw_only=True):
    """A file, relative to the task directory, to be written (None: removed) at a restore."""

    name: str
    content: bytes | None


class FamilyNote(msgspec.Struct, frozen=True, kw_only=True):
    """Entries to be flushed into a column family of a staged database."""

    database: str
    family: str
    entries: Mapping[bytes, bytes | None]


Note = FileNote | FamilyNote


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """What a layout found. ``notes`` are sentences on what was skipped, and why."""

    locations: tuple[StoreLocation, ...]
    notes: tuple[str, ...] = ()


class Layout(Protocol):
    """Knows folders: finds stores, reads and notes their offsets, says if the application runs."""

    name: str

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        """Find the stores below ``state_dir`` by reading only."""
        ...

    def in_use(self, location: StoreLocation) -> bool:
        """Whether an application has the directory open; takes no lock and drops none."""
        ...

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those that an application has open; cheaper than to ask for each."""
        ...

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        """Offsets that lie in a file beside the store; read *before* the capture."""
        ...

    def positions(
        self, location: StoreLocation, noted: bytes | None, view: StoreView, *, running: bool
    ) -> tuple[ChangelogPosition, ...]:
        """Decide which offsets the captured files hold: never newer than the files.

        Empty for a store without a changelog. Raises UnknownOffsetError when the files do not say,
        ExactlyOnceHotError when they may hold writes that abort.
        """
        ...

    def remarks(
        self,
        location: StoreLocation,
        noted: bytes | None,
        view: StoreView,
        positions: Sequence[ChangelogPosition],
    ) -> tuple[str, ...]:
        """Return sentences for the operator on what the offsets show; none is a refusal."""
        ...

    def task_dir(self, target: Path, description: Description) -> Path:
        """Where the task of that snapshot belongs below a state directory.

        Raises UnsafePathError when its names would lead elsewhere.
        """
        ...

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:
        """Return sentences on what the application there must be able to open.

        Raises WrongGenerationError when its files show that it is too old for the snapshot.
        """
        ...

    def notes(
        self, task_dir: Path, restored: Sequence[Description], views: Sequence[StoreView]
    ) -> tuple[Note, ...]:
        """Plan how the offsets of the restored stores are noted in a staged task directory.

        ``task_dir`` already holds the other stores' files; their offsets are kept, and none is
        noted for a store whose files are not there.
        """
        ...

    def hold(self, target: Path, description: Description) -> AbstractContextManager[None]:
        """Keep the application from starting while its directory is changed.

        Raises StoreInUseError when it runs.
        """
        ...


@runtime_checkable
class StartInspector(Protocol):
    """A layout that can read what its application goes by when it starts."""

    def read_tasks(self, state_dir: Path, application: str | None) -> tuple[TaskFacts, ...]:
        """Return every task with its stores, also one whose stores are all gone.

        What the databases note themselves is left open. Raises StoreNotFoundError.
        """
        ...

    def read_databases(self, store: StoreFacts, views: Sequence[StoreView]) -> StoreFacts:
        """Add what the databases of a store note; those that no view shows stay as they are.

        Raises SourceDamagedError when one notes what cannot be.
        """
        ...

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those that an application has open; takes no lock and drops none."""
        ...

    def application_dirs(self, state_dir: Path, application: str | None) -> Mapping[str, Path]:
        """Return the directory of each application, by name. Raises StoreNotFoundError."""
        ...

    def mend_notes(
        self,
        task: TaskFacts,
        least: Mapping[StoreId, Mapping[ChangelogPartition, int]],
        dropped: Collection[OrphanLine | StoreId],
    ) -> tuple[Note, ...]:
        """Plan how applied offsets are noted in every database of the stores of ``least``.

        What offset files hold of them, and of the stores and lines in ``dropped``, goes.
        """
        ...

    def keep_stopped(
        self, application_dir: Path, locations: Sequence[StoreLocation]
    ) -> AbstractContextManager[None]:
        """Keep the application from starting; raises StoreInUseError when it runs."""
        ...


class ReplaySubject(msgspec.Struct, frozen=True, kw_only=True):
    """A store that is to be brought forward in one changelog partition.

    ``position`` is how far it has got, None for one that is empty. ``state`` is the partition now.
    """

    location: StoreLocation
    changelog: ChangelogPartition
    position: ChangelogPosition | None
    state: PartitionState


class StoreReplay(Protocol):
    """A store that is being brought forward by the rules of its application."""

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        """Write records, which are in order, and with them that all before ``reached`` was seen.

        What a database has already, by its own offset, is not written to it again. Raises
        NotReplayableError at a record that contradicts what is known of the store.
        """
        ...


class ReplayLayout(Protocol):
    """A layout that knows how its application writes records into its stores.

    Asked for by the method ``open_replay``, which other layouts lack.
    """

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        """Return the changelog that the application would give a store of that name."""
        ...

    def offsets_by_database(
        self, location: StoreLocation, view: StoreView, changelog: ChangelogPartition
    ) -> Mapping[str, int | None]:
        """Return what each database itself has applied, None where it does not say.

        Empty where the store's offset lies beside its files. Raises ExactlyOnceHotError when the
        databases may hold writes that abort.
        """
        ...

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        """Find out by what rules the store is written; nothing is written yet.

        Raises NotReplayableError when they cannot be proved.
        """
        ...


class Tail(Protocol):
    """Committed records of a range of offsets, in order and in batches; iterated once.

    Iterating raises ChangelogGoneError, ChangelogTruncatedError, LogDivergedError, CredentialsError
    or, when nothing comes in time, KafkaError.
    """

    def __iter__(self) -> Iterator[Sequence[ChangelogRecord]]: ...

    @property
    def report(self) -> TailReport:
        """What was read up to now: complete once the iteration has ended."""
        ...


class Changelog(Protocol):
    """The changelogs of one cluster, for reading. Safe to use from several threads.

    Every method raises KafkaError when the brokers do not answer in time (try again),
    CredentialsError when they deny, ChangelogGoneError when topic or partition do not exist.
    No topic is ever created.
    """

    def inspect(self, changelog: ChangelogPartition, *, now: datetime) -> PartitionState:
        """Describe the partition as it is after ``now``, a wall time read before the call."""
        ...

    def mark(self, changelog: ChangelogPartition, offset: int) -> RecordMark | None:
        """Fingerprint the committed record at that offset; None where there is none (any more)."""
        ...

    def last_mark(
        self, changelog: ChangelogPartition, *, start: int, stop: int
    ) -> RecordMark | None:
        """Fingerprint the last record before ``stop``; None where none is near enough to find."""
        ...

    def check_history(
        self, changelog: ChangelogPartition, *, offset: int, leader_epoch: int
    ) -> None:
        """Raise LogDivergedError if the log was cut back below ``offset`` since that epoch.

        ChangelogTruncatedError when the offset is below the log's start.
        """
        ...

    def read(
        self,
        changelog: ChangelogPartition,
        start: int,
        stop: int,
        *,
        leader_epoch: int | None = None,
    ) -> AbstractContextManager[Tail]:
        """Read from ``start`` to before ``stop``, which is not beyond the log's stable end.

        With the leader epoch of the record before ``start``, a log that was cut back in between is
        noticed. Ends also where the last offsets hold no record.
        """
        ...

    def offset_at(self, changelog: ChangelogPartition, at: datetime) -> int | None:
        """Return the first offset with a record of that time or later; None where there is none."""
        ...

    def close(self) -> None: ...

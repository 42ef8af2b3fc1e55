"""Folders: where stores are, and how their offsets are noted."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.unread import Unread
from snapstore.ports.store import StoreView

if TYPE_CHECKING:
    from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts


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
    """What a layout found. ``notes`` are sentences on what was skipped, and why.

    ``unread`` are stores that are there and could not be looked at; they stop no other.
    """

    locations: tuple[StoreLocation, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()


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
class WatchingLayout(Protocol):
    """A layout that can make many questions for who is in use cheap."""

    def watching_locks(self) -> AbstractContextManager[None]:
        """Until this is left, ``in_use`` costs little; to be entered before threads are started."""
        ...


@runtime_checkable
class StartInspector(Protocol):
    """A layout that can read what its application goes by when it starts."""

    def read_tasks(self, state_dir: Path, application: str | None) -> "tuple[TaskFacts, ...]":
        """Return every task with its stores, also one whose stores are all gone.

        What the databases note themselves is left open. Raises StoreNotFoundError.
        """
        ...

    def read_databases(self, store: "StoreFacts", views: Sequence[StoreView]) -> "StoreFacts":
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
        task: "TaskFacts",
        least: Mapping[StoreId, Mapping[ChangelogPartition, int]],
        dropped: "Collection[OrphanLine | StoreId]",
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

"""Stores of one type: looking into them, capturing and writing them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from snapstore.model.store import CapturedFile, StoreLocation


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


@runtime_checkable
class SeekableView(StoreView, Protocol):
    """A view that need not read a family from its beginning."""

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order."""
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


class StoreWriter(SeekableView, Protocol):
    """The databases of one store, opened for writing; what is read is what was written.

    Whatever a crash leaves of a database is what a number of whole ``write`` calls left there.
    Every method raises CaptureError, or NoSpaceError when the disk is full.
    """

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
        """Make a database with these families, or give one that is there those it lacks."""
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


@runtime_checkable
class InstallingBackend(StoreBackend, Protocol):
    """A store type whose captured files are not yet what its application opens."""

    def install(self, task_dir: Path, root: str) -> None:
        """Make the store of the captured files, in a directory that snapstore has staged.

        Called before offsets are noted; to call it again, or on a store that is whole, does no
        harm. ``open_view`` sees the same before and after. Raises SourceDamagedError or
        NoSpaceError.
        """
        ...

"""SQLite databases as a store type of snapstore."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from snapstore.errors import StoreNotFoundError
from snapstore.model.store import CapturedFile, StoreLocation
from snapstore_sqlite import pages
from snapstore_sqlite.copying import copy_database, has_log
from snapstore_sqlite.store import DATABASE
from snapstore_sqlite.view import SQLiteView
from snapstore_sqlite.writer import SQLiteWriter


class SQLiteOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``range_bytes``: how much is stored anew when one page changes. ``staging_dir``: for copies;
    it needs as much space as the largest store (None: the system's temporary folder).
    """

    range_bytes: Annotated[int, msgspec.Meta(ge=4096)] = 256 << 10
    staging_dir: str | None = None


class SQLiteCapture:
    """Implements Capture: ranges of a copy that is gone when the capture is left."""

    def __init__(self, files: tuple[CapturedFile, ...], view: SQLiteView) -> None:
        self.files = files
        self.view = view

    def release(self, file: CapturedFile) -> None:
        """Nothing is held for a single file."""


class SQLiteBackend:
    """Implements StoreBackend for folders with one ``state.db``."""

    name: str = "sqlite"
    Options: ClassVar[type[SQLiteOptions]] = SQLiteOptions

    def __init__(self, options: SQLiteOptions | None = None) -> None:
        self._options = options or SQLiteOptions()

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[SQLiteCapture]:
        """Copy the database and cut the copy; the offset is in it, so the two cannot differ.

        Raises what ``copy_database`` raises, and UnsafePathError.
        """
        pages.check_root(location.root)
        with self._room() as room:
            copy = room / DATABASE
            copy_database(location.path / DATABASE, copy)
            yield SQLiteCapture(
                pages.cut(copy, location.root, self._options.range_bytes),
                SQLiteView(copy, location.root),
            )

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[SQLiteView]:
        """Look into a store, installed or not, without changing anything in its folder."""
        pages.check_root(root)
        folder = task_dir / root
        path = folder / DATABASE
        with self._room() as room:
            if pages.is_cut(folder):
                pages.join(folder, room / DATABASE)
                path = room / DATABASE
            elif has_log(path):
                copy_database(path, room / DATABASE)
                path = room / DATABASE
            if not path.is_file():
                raise StoreNotFoundError(f"no state in {folder}", path=str(folder))
            yield SQLiteView(path, root)

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Put (None: delete) entries of one table in one transaction."""
        pages.install(database)
        with closing(SQLiteWriter(database, database.name)) as writer:
            if any(value is not None for value in entries.values()):
                writer.create(database.name, [family])
            writer.write(database.name, {family: entries.items()})

    def install(self, task_dir: Path, root: str) -> None:
        """Put the ranges of a staged capture together as the application's database."""
        pages.check_root(root)
        pages.install(task_dir / root)

    @contextmanager
    def open_writer(self, task_dir: Path, root: str) -> Iterator[SQLiteWriter]:
        """Open a store that its application is kept from; it is made when it is written to."""
        pages.check_root(root)
        pages.install(task_dir / root)
        with closing(SQLiteWriter(task_dir / root, root)) as writer:
            yield writer

    @contextmanager
    def _room(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(
            prefix="snapstore-", dir=self._options.staging_dir
        ) as folder:
            yield Path(folder)

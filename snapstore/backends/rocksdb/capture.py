"""The files of one store, held still while they are read."""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.copying import check_free_space, free_bytes
from snapstore.backends.rocksdb.databases import Found, find_databases
from snapstore.backends.rocksdb.freeze import read_small
from snapstore.backends.rocksdb.held import Held, StagedSource
from snapstore.backends.rocksdb.hold import HeldDatabase, Pause, hold_database
from snapstore.backends.rocksdb.options import RocksDBOptions
from snapstore.backends.rocksdb.rooms import Rooms
from snapstore.backends.rocksdb.view import RocksDBView
from snapstore.errors import CaptureError, StoreChangedError, StoreNotFoundError
from snapstore.model.identity import natural_order
from snapstore.model.pinned import identity_of
from snapstore.model.store import BytesSource, CapturedFile, StoreLocation

_INLINE_LIMIT_BYTES = 64 << 10


class RocksDBCapture:
    """A store's live tables and what else its databases need to open."""

    def __init__(
        self,
        databases: Sequence[HeldDatabase],
        side_files: Sequence[CapturedFile],
        source: Path,
        min_free_bytes: int,
    ) -> None:
        self._source = source
        self._min_free_bytes = min_free_bytes
        self._held: dict[str, tuple[Held, HeldDatabase]] = {
            names.child(database.found.name, name): (table, database)
            for database in databases
            for name, table in database.tables.items()
        }
        self._view = RocksDBView({held.found.name: held.opened for held in databases})
        dying: list[CapturedFile] = []
        rest = [*side_files]
        for database in databases:
            rest += _copied_files(database)
            for name, table in database.tables.items():
                status = database.statuses[name]
                file = _table_file(names.child(database.found.name, name), table, status)
                (rest if status.st_nlink else dying).append(file)
        by_name = attrgetter("name")
        self._files = (*sorted(dying, key=by_name), *sorted(rest, key=by_name))

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        """Tables that the application has deleted already come first."""
        return self._files

    @property
    def view(self) -> RocksDBView:
        return self._view

    def release(self, file: CapturedFile) -> None:
        """Let go of a table whose bytes are stored; its database can be viewed no more.

        Raises NoSpaceError when tables that the application has deleted, and that are still held,
        have brought the disk below ``min_free_bytes``.
        """
        entry = self._held.pop(file.name, None)
        if entry is None:
            return
        held, database = entry
        database.opened.close()
        held.free()
        # Asked first, and mostly last: looking at every table after each one is quadratic.
        if free_bytes(self._source) >= self._min_free_bytes:
            return
        if any(other.status().st_nlink == 0 for other, _ in self._held.values()):
            check_free_space(self._source, self._min_free_bytes)


def capture_store(
    location: StoreLocation, rooms: Rooms, options: RocksDBOptions, pause: Pause, stack: ExitStack
) -> RocksDBCapture:
    """Hold every database of the store, each one opened; ``stack`` frees them.

    Databases need no common moment: each knows its own offset. But a segment that appears meanwhile
    belongs to the store, and one that vanished as a whole has expired: if it was older than all
    others. Else the store itself is being removed, and what is left of it is not the store.
    """
    side_files = _side_files(location)
    found = _find(location)
    if not found:
        raise StoreNotFoundError(
            f"no state in {location.path}",
            hint="nothing was written there yet, or the application has removed it",
            path=str(location.path),
        )
    check_free_space(location.path, options.min_free_bytes)
    held: dict[str, HeldDatabase] = {}
    vanished: set[str] = set()
    rounds = 0
    while missing := [each for each in found if each.name not in held]:
        rounds += 1
        if rounds > options.max_attempts:
            raise StoreChangedError(
                f"databases kept coming and going in {location.path}", path=str(location.path)
            )
        for each in missing:
            database = hold_database(each, rooms.inner(), options, pause)
            if database is None:
                vanished.add(each.name)
                continue
            stack.callback(database.close)
            held[each.name] = database
        found = _find(location)
    if not found or not held:
        raise StoreChangedError(
            f"{location.path} was removed while it was read", path=str(location.path)
        )
    oldest = min(held, key=natural_order)
    for name in vanished - held.keys():
        if natural_order(name) > natural_order(oldest):
            raise StoreChangedError(
                f"{name} was removed while {location.path} was read", path=str(location.path)
            )
    return RocksDBCapture(list(held.values()), side_files, location.path, options.min_free_bytes)


def _find(location: StoreLocation) -> tuple[Found, ...]:
    try:
        return find_databases(location.task_dir, location.root)
    except FileNotFoundError:
        return ()


def _table_file(name: str, held: Held, status: os.stat_result) -> CapturedFile:
    return CapturedFile(
        name=name,
        mode=stat.S_IMODE(status.st_mode),
        source=held.source(status.st_size),
        identity=identity_of(status),
    )


def _copied_files(database: HeldDatabase) -> Iterable[CapturedFile]:
    for name in database.copies:
        path = (database.folder / name).resolve()
        size = path.stat().st_size
        inline = size <= _INLINE_LIMIT_BYTES and not names.is_log(name)
        source = BytesSource(path.read_bytes()) if inline else StagedSource(path, size)
        yield CapturedFile(
            name=names.child(database.found.name, name), mode=0o644, source=source, inline=inline
        )


def _side_files(location: StoreLocation) -> list[CapturedFile]:
    """Read the small files beside the store, before anything else: they must not be newer."""
    files = []
    for name in location.side_files:
        names.check_folder(name)
        try:
            content = read_small(location.task_dir / name)
        except FileNotFoundError:
            continue
        if len(content) > _INLINE_LIMIT_BYTES:
            raise CaptureError(f"{name} is too large for a file beside a store", file=name)
        files.append(CapturedFile(name=name, mode=0o644, source=BytesSource(content), inline=True))
    return files

"""Hold one database and prove that it opens; try again while it changes."""

import errno
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.databases import Found, list_names
from snapstore.backends.rocksdb.descriptors import can_pin, reserve
from snapstore.backends.rocksdb.freeze import (
    Freezer,
    Frozen,
    UnsettledError,
    source_state,
)
from snapstore.backends.rocksdb.held import Copy, Held, Pin
from snapstore.backends.rocksdb.opened import ALL_FILES, OpenDatabase, OpenError
from snapstore.backends.rocksdb.options import RocksDBOptions
from snapstore.backends.rocksdb.rooms import Rooms
from snapstore.backends.rocksdb.unsupported import looks_encrypted, refused, unsupported
from snapstore.errors import CaptureError, SourceDamagedError, StoreChangedError

_SAME_FAILURES = 6
"""So many failures in a row over one and the same state of the source are no race."""

_FEW_FILES = 128
_LONGEST_PAUSE_SECONDS = 1.0

Pause = Callable[[float], None]


class HeldDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database that is held still and open. ``tables`` are the live ones, and no other.

    ``statuses`` are theirs, looked at after the MANIFEST was read.
    """

    found: Found
    folder: Path
    tables: dict[str, Held]
    statuses: dict[str, os.stat_result]
    copies: tuple[str, ...]
    opened: OpenDatabase

    def close(self) -> None:
        self.opened.close()
        for table in self.tables.values():
            table.free()


def hold_database(
    found: Found, rooms: Rooms, options: RocksDBOptions, pause: Pause
) -> HeldDatabase | None:
    """Hold one database still; None when its whole folder has gone meanwhile.

    ``rooms`` are empty folders of our own; ``pause`` sleeps for about so many seconds.

    Raises StoreChangedError when it did not settle within the attempts, SourceDamagedError when
    the source stayed the same and still does not open.
    """
    copying = options.copy_tables or not can_pin()
    failures: list[UnsettledError | OpenError] = []
    states: list[object] = []
    while len(failures) < options.max_attempts:
        if failures:
            pause(min(options.retry_seconds * 2 ** (len(failures) - 1), _LONGEST_PAUSE_SECONDS))
        copying = copying or not reserve(_count_tables(found))
        try:
            return _attempt(found, rooms, options, copying=copying)
        except (UnsettledError, OpenError) as failure:
            failures.append(failure)
            if isinstance(failure, OpenError) and failure.out_of_descriptors:
                copying = True
                continue
            states.append(source_state(found))
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE} or copying:
                raise
            copying = True
        if states and states[-1] is None:
            return None
        last = states[-_SAME_FAILURES:]
        if len(last) == _SAME_FAILURES and all(state == last[0] for state in last):
            raise _damaged(found, failures[-1])
    raise StoreChangedError(
        f"{found.name} kept changing while it was read: {failures[-1].reason}",
        hint="try again, or when the application is less busy",
        database=found.name,
        attempts=len(failures),
    ) from failures[-1]


def _attempt(found: Found, rooms: Rooms, options: RocksDBOptions, *, copying: bool) -> HeldDatabase:
    folder, large = rooms.links / "view", None
    if rooms.disk is not None:
        large = partial(_emptied, rooms.disk)
    _remove(folder)
    folder.mkdir(mode=0o700)
    hold = _hold(rooms, options, copying)
    frozen = Freezer(found, folder, hold, options.min_free_bytes, large=large).freeze()
    opened = None
    try:
        opened = OpenDatabase(folder, found.name, max_open_files=_open_files(len(frozen.tables)))
        return _only_live(frozen, opened)
    except BaseException:
        if opened is not None:
            opened.close()
        for table in frozen.tables.values():
            table.abandon()
        raise


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _emptied(disk: Callable[[], Path]) -> Path:
    """Return a folder on the disk without what an earlier attempt left there."""
    folder = disk() / "view"
    _remove(folder)
    folder.mkdir(mode=0o700)
    return folder


def _hold(rooms: Rooms, options: RocksDBOptions, copying: bool) -> Callable[[str], Held]:
    if not copying:
        return Pin
    staging = rooms.copies() / "copies"
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    return partial(Copy, staging=staging, min_free_bytes=options.min_free_bytes)


def _only_live(frozen: Frozen, opened: OpenDatabase) -> HeldDatabase:
    """Keep the tables that the MANIFEST calls live, once their presence and size are checked."""
    live = opened.live_tables()
    statuses = {}
    for name, size in live.items():
        held = frozen.tables.get(name)
        if held is None:
            raise OpenError(f"the table {name} is missing", name)
        statuses[name] = held.status()
        found_size = statuses[name].st_size
        if found_size != size:
            raise OpenError(f"{name} has {found_size} bytes, not {size}", name)
    for name, table in frozen.tables.items():
        if name not in live:
            (frozen.folder / name).unlink()
            table.free()
    return HeldDatabase(
        found=frozen.found,
        folder=frozen.folder,
        tables={name: frozen.tables[name] for name in sorted(live)},
        statuses=statuses,
        copies=frozen.copies,
        opened=opened,
    )


def _open_files(tables: int) -> int:
    """Each table is opened once more by RocksDB: all at once where the limit allows it."""
    return ALL_FILES if reserve(tables) else _FEW_FILES


def _count_tables(found: Found) -> int:
    try:
        return sum(map(names.is_table, list_names(found.path)))
    except FileNotFoundError:
        return 0


def _damaged(found: Found, failure: UnsettledError | OpenError) -> CaptureError:
    if isinstance(failure, OpenError) and (other := unsupported(found, failure.reason)):
        return other
    if failure.file == names.CURRENT and looks_encrypted(found):
        return refused(found.name, "its files seem to be encrypted")
    if failure.file is None:
        if isinstance(failure, UnsettledError):
            return StoreChangedError(
                f"{found.name} cannot be captured now: {failure.reason}",
                hint="try again; if nothing runs there, remove that folder",
                database=found.name,
            )
        return CaptureError(f"{found.name} cannot be opened: {failure.reason}", database=found.name)
    return SourceDamagedError(
        f"{names.child(found.name, failure.file)} is missing or broken: {failure.reason}",
        hint="the store must be rebuilt from its changelog",
        database=found.name,
        file=names.child(found.name, failure.file),
    )

"""Copy a database as one moment left it, whether an application writes to it or not."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import msgspec

from snapstore.errors import (
    CaptureError,
    SourceDamagedError,
    StoreChangedError,
    StoreNotFoundError,
)
from snapstore_sqlite.errors import sqlite_errors


class _Look(msgspec.Struct, frozen=True):
    """``open``: somebody has it open, or has crashed; a clean end removes the write-ahead log."""

    open: bool
    inode: int
    size: int
    mtime_ns: int


def copy_database(source: Path, target: Path) -> None:
    """Copy the pages of ``source`` into the new file ``target``, by SQLite's online backup.

    Pages keep their numbers, so two copies differ only where the store does. The source is only
    read: without a write-ahead log nobody has it open, and it is opened as a file that cannot
    change, since SQLite would make its own files beside it otherwise. Raises StoreNotFoundError,
    StoreChangedError, SourceDamagedError, NoSpaceError or CaptureError.
    """
    before = _look(source)
    try:
        with (
            sqlite_errors(source),
            closing(open_read_only(source, immutable=not before.open)) as reader,
            closing(sqlite3.connect(target)) as copy,
        ):
            # All in one step: one read transaction, so one moment.
            reader.backup(copy, pages=-1)
            (mode,) = copy.execute("PRAGMA journal_mode").fetchone()
            (pages,) = copy.execute("PRAGMA page_count").fetchone()
            complaints = [str(row[0]) for row in copy.execute("PRAGMA quick_check(1)")]
    except CaptureError as error:
        # What SQLite says of a file that is made, opened or removed under it is not of the store.
        _require_same(source, before, error)
        raise
    _require_same(source, before, None)
    if pages <= 1:
        # The first page is that of the schema: there is no table yet, maybe not even a log.
        raise StoreNotFoundError(f"{source} is empty", path=str(source))
    if mode != "wal":
        raise CaptureError(
            f"{source} is in journal mode {mode}, in which a reader holds up the application",
            hint="switch it to the write-ahead log: PRAGMA journal_mode = WAL",
            path=str(source),
        )
    if complaints != ["ok"]:
        raise SourceDamagedError(f"{source}: {complaints[0]}", path=str(source))


def _require_same(source: Path, before: _Look, cause: CaptureError | None) -> None:
    """Raise StoreChangedError if the database was replaced, opened or closed; StoreNotFoundError.

    Somebody who has it open may write to it: a transaction sees one moment of that.
    """
    now = _look(source)
    same = (now.open, now.inode) == (before.open, before.inode) if before.open else now == before
    if not same:
        raise StoreChangedError(
            f"{source} was opened, closed or replaced while it was read",
            hint="try again",
            path=str(source),
        ) from cause


def open_read_only(path: Path, *, immutable: bool) -> sqlite3.Connection:
    """Open for reading; ``immutable`` promises that nobody writes to it and that it has no log."""
    query = "mode=ro&immutable=1" if immutable else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{query}", uri=True, isolation_level=None)


def has_log(path: Path) -> bool:
    return path.with_name(f"{path.name}-wal").exists()


def _look(path: Path) -> _Look:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreNotFoundError(f"no state in {path.parent}", path=str(path)) from error
    if not stat.S_ISREG(status.st_mode):
        raise CaptureError(f"{path} is not a file", path=str(path))
    return _Look(has_log(path), status.st_ino, status.st_size, status.st_mtime_ns)

"""What SQLite reports, in snapstore's words."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import (
    CaptureError,
    NoSpaceError,
    SourceDamagedError,
    StoreChangedError,
    StoreNotFoundError,
)

_PRIMARY = 0xFF


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Translate at the border: nobody above has to know which driver is at work."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the primary result code (https://sqlite.org/rescode.html).
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
        message = f"{path}: {error}"
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise SourceDamagedError(message, path=str(path)) from error
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_SCHEMA):
            raise StoreChangedError(message, hint="try again", path=str(path)) from error
        if code == sqlite3.SQLITE_FULL:
            raise NoSpaceError(message, path=str(path)) from error
        if str(error).startswith("no such table"):
            raise StoreNotFoundError(message, path=str(path)) from error
        raise CaptureError(message, path=str(path)) from error

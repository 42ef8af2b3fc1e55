"""Write into a store that its application is kept from."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from snapstore.errors import CaptureError, StoreNotFoundError
from snapstore.ports import Pair
from snapstore_sqlite.errors import sqlite_errors
from snapstore_sqlite.store import DATABASE, connect, make_table, quoted
from snapstore_sqlite.view import TABLES

_LAST_BYTE = 0xFF


class SQLiteWriter:
    """Implements StoreWriter for the one database of a store; each ``write`` is a transaction."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / DATABASE
        self._name = name
        self._connection: sqlite3.Connection | None = None
        if self._path.exists():
            self._open()

    @property
    def databases(self) -> tuple[str, ...]:
        return () if self._connection is None else (self._name,)

    def families(self, database: str) -> tuple[str, ...]:
        with sqlite_errors(self._path):
            return tuple(str(row[0]) for row in self._opened(database).execute(TABLES))

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        return self.scan_from(database, family, b"")

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order."""
        query = f"SELECT key, value FROM {quoted(family)} WHERE key >= ? ORDER BY key"
        with sqlite_errors(self._path):
            for key, value in self._opened(database).execute(query, (start,)):
                yield bytes(key), bytes(value)

    def get(self, database: str, family: str, key: bytes) -> bytes | None:
        query = f"SELECT value FROM {quoted(family)} WHERE key = ?"
        with sqlite_errors(self._path):
            row = self._opened(database).execute(query, (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def write(
        self,
        database: str,
        pairs: Mapping[str, Iterable[Pair]],
        *,
        emptied: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Write all of it or nothing: keys with a prefix in ``emptied`` go first."""
        connection = self._opened(database)
        with sqlite_errors(self._path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                for family, prefixes in (emptied or {}).items():
                    for prefix in prefixes:
                        _delete_prefix(connection, family, prefix)
                for family, each in pairs.items():
                    put_pairs(connection, family, each)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def create(self, database: str, families: Sequence[str]) -> None:
        """Make the database, or in one that is there the families that it lacks."""
        if database != self._name:
            raise CaptureError(f"a store has one database, {self._name!r}, and not {database!r}")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = self._open() if self._connection is None else self._connection
        with sqlite_errors(self._path):
            for family in families:
                make_table(connection, family)

    def drop(self, database: str) -> None:
        """Remove the database with all that is in it."""
        self._opened(database)
        self.close()
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def flush(self) -> None:
        """Put everything into the database itself; it was durable before, in the log."""
        if self._connection is not None:
            with sqlite_errors(self._path):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close it, which takes its log up and removes it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        with sqlite_errors(self._path):
            self._connection = connect(self._path)
        return self._connection

    def _opened(self, database: str) -> sqlite3.Connection:
        if self._connection is None or database != self._name:
            raise StoreNotFoundError(f"no database {database!r} in this store")
        return self._connection


def put_pairs(connection: sqlite3.Connection, family: str, pairs: Iterable[Pair]) -> None:
    """Put (None: delete) pairs in the order given, in the transaction that is open."""
    put = f"REPLACE INTO {quoted(family)} VALUES (?, ?)"
    delete = f"DELETE FROM {quoted(family)} WHERE key = ?"
    for key, value in pairs:
        if value is None:
            connection.execute(delete, (key,))
        else:
            connection.execute(put, (key, value))


def _delete_prefix(connection: sqlite3.Connection, family: str, prefix: bytes) -> None:
    query = f"DELETE FROM {quoted(family)} WHERE key >= ?"
    after = _after(prefix)
    if after is None:
        connection.execute(query, (prefix,))
    else:
        connection.execute(f"{query} AND key < ?", (prefix, after))


def _after(prefix: bytes) -> bytes | None:
    """Return the first key behind all that begin with the prefix; None where there is none."""
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None

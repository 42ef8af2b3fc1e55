"""The store as an application uses it: a table of pairs, and the offset beside it.

One commit holds the pairs of some records and the offset of the last of them, so whatever moment of
the file one sees, its offset is neither older nor newer than its pairs.
"""

import fcntl
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

DATABASE = "state.db"
LOCK = ".lock"

ENTRIES = "entries"
OFFSETS = "offsets"


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def make_table(connection: sqlite3.Connection, name: str) -> None:
    """Make a table of pairs unless it is there; SQLite orders keys as bytes."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {quoted(name)}"
        " (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
    )


def connect(path: Path) -> sqlite3.Connection:
    """Open a database for writing, made if need be, with a write-ahead log.

    With one, a reader such as snapstore never holds up the writer.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class Store:
    """Pairs of bytes, and how far they have got in each changelog (``topic:partition``)."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = connect(folder / DATABASE)
        for table in (ENTRIES, OFFSETS):
            make_table(self._connection, table)

    def get(self, key: bytes) -> bytes | None:
        row = self._connection.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def apply(self, pairs: Mapping[bytes, bytes | None], changelog: str, offset: int) -> None:
        """Put the pairs (None: delete), which hold everything up to that offset."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for key, value in pairs.items():
                if value is None:
                    self._connection.execute("DELETE FROM entries WHERE key = ?", (key,))
                else:
                    self._connection.execute("REPLACE INTO entries VALUES (?, ?)", (key, value))
            noted = (changelog.encode(), b"%d" % offset)
            self._connection.execute("REPLACE INTO offsets VALUES (?, ?)", noted)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def applied(self, changelog: str) -> int | None:
        """Return the offset up to which the changelog is in the store."""
        row = self._connection.execute(
            "SELECT value FROM offsets WHERE key = ?", (changelog.encode(),)
        ).fetchone()
        return None if row is None else int(row[0])

    def close(self) -> None:
        self._connection.close()


class Application:
    """The stores of one application: ``STATE_DIR/APPLICATION/PARTITION/STORE/state.db``.

    While it is open it holds a lock, by which snapstore sees that it runs and keeps it from
    starting during a restore. Raises BlockingIOError when somebody has the lock.
    """

    def __init__(self, state_dir: Path, name: str) -> None:
        self._folder = state_dir / name
        self._folder.mkdir(parents=True, exist_ok=True)
        self._stores: list[Store] = []
        self._lock = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise

    def store(self, partition: int, name: str) -> Store:
        opened = Store(self._folder / str(partition) / name)
        self._stores.append(opened)
        return opened

    def close(self) -> None:
        for store in self._stores:
            store.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

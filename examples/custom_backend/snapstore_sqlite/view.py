"""Look into a database that nobody writes to; nothing stays open between two questions."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from snapstore.errors import StoreNotFoundError
from snapstore_sqlite.copying import open_read_only
from snapstore_sqlite.errors import sqlite_errors
from snapstore_sqlite.store import quoted

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"


class SQLiteView:
    """Implements StoreView: the one database of a store, its tables as families."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name

    @property
    def databases(self) -> tuple[str, ...]:
        return (self._name,)

    def families(self, database: str) -> tuple[str, ...]:
        self._check(database)
        with (
            sqlite_errors(self._path),
            closing(open_read_only(self._path, immutable=True)) as connection,
        ):
            return tuple(str(row[0]) for row in connection.execute(TABLES))

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        self._check(database)
        with (
            sqlite_errors(self._path),
            closing(open_read_only(self._path, immutable=True)) as connection,
        ):
            rows = connection.execute(f"SELECT key, value FROM {quoted(family)} ORDER BY key")
            for key, value in rows:
                yield bytes(key), bytes(value)

    def _check(self, database: str) -> None:
        if database != self._name:
            raise StoreNotFoundError(f"no database {database!r} in this store")

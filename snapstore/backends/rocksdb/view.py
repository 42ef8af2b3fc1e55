"""Read-only sight of the databases of one store."""

from collections.abc import Iterator, Mapping

from snapstore.backends.rocksdb.opened import OpenDatabase
from snapstore.errors import StoreNotFoundError


class RocksDBView:
    """The databases by their folder relative to the task directory."""

    def __init__(self, opened: Mapping[str, OpenDatabase]) -> None:
        self._opened = dict(sorted(opened.items()))

    @property
    def databases(self) -> tuple[str, ...]:
        return tuple(self._opened)

    def families(self, database: str) -> tuple[str, ...]:
        return self._database(database).families

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        return self._database(database).scan(family)

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order."""
        return self._database(database).scan(family, start)

    def _database(self, name: str) -> OpenDatabase:
        if name not in self._opened:
            raise StoreNotFoundError(
                f"no database {name!r} in this store", databases=list(self._opened)
            )
        return self._opened[name]

"""The databases of one store, opened for writing: in a work folder or a staged task directory.

Writes go past the write-ahead log, as those of Kafka Streams do, and all families of a database are
flushed together: what lies on the disk at any moment is what some number of whole batches left.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rocksdict import Rdict, WriteBatch, WriteOptions

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.databases import find_databases, list_names
from snapstore.backends.rocksdb.tuning import database_options, family_options
from snapstore.backends.rocksdb.writing import settle, write_failures
from snapstore.errors import StoreNotFoundError
from snapstore.ports import Pair

_DEFAULT = "default"
_LAST_BYTE = 0xFF


class RocksDBWriter:
    """Implements StoreWriter. ``close`` makes everything durable."""

    def __init__(self, task_dir: Path, root: str) -> None:
        """Open nothing yet; the store's folder need not be there.

        Raises UnsafePathError for a name that no snapshot can hold.
        """
        names.check_folder(root)
        self._task_dir = task_dir
        self._open: dict[str, _Database] = {}
        try:
            found = find_databases(task_dir, root)
        except FileNotFoundError:
            found = ()
        self._names = {each.name for each in found}

    @property
    def databases(self) -> tuple[str, ...]:
        return tuple(sorted(self._names))

    def families(self, database: str) -> tuple[str, ...]:
        return self._database(database).families

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        return self._database(database).scan(family, b"")

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order."""
        return self._database(database).scan(family, start)

    def get(self, database: str, family: str, key: bytes) -> bytes | None:
        return self._looked_up(database).get(family, key)

    def write(
        self,
        database: str,
        pairs: Mapping[str, Iterable[Pair]],
        *,
        emptied: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Write all of it or nothing; keys with a prefix in ``emptied`` go before ``pairs``."""
        self._database(database).write(pairs, emptied or {})

    def create(self, database: str, families: Sequence[str]) -> None:
        """Make a database with these families beside ``default``, or give it those it lacks."""
        names.check_folder(database)
        if database in self._names:
            families = [*self.families(database), *families]
            self._open.pop(database).close()
        folder = self._task_dir / database
        folder.mkdir(parents=True, exist_ok=True)
        self._names.add(database)
        self._open[database] = _Database(folder, database, families)

    def drop(self, database: str) -> None:
        """Remove a database with all that is in it."""
        opened = self._open.pop(database, None)
        if opened is not None:
            opened.close()
        self._names.discard(database)
        shutil.rmtree(self._task_dir / database)

    def flush(self) -> None:
        """Make everything durable, each database as a whole."""
        # Closing is what flushes all families of a database in one step (DBImpl::Close); a flush
        # that is asked for takes one family after the other.
        for database in [*self._open]:
            self._open.pop(database).close()

    def close(self) -> None:
        self.flush()

    def _looked_up(self, name: str) -> "_Database":
        opened = self._database(name)
        if opened.written and not opened.looked_up:
            self._open.pop(name).close()
            self._open[name] = opened = _Database(self._task_dir / name, name, looked_up=True)
        return opened

    def _database(self, name: str) -> "_Database":
        opened = self._open.get(name)
        if opened is not None:
            return opened
        if name not in self._names:
            raise StoreNotFoundError(
                f"no database {name!r} in this store", databases=sorted(self._names)
            )
        self._open[name] = opened = _Database(self._task_dir / name, name)
        return opened


class _Database:
    """One database that is open for writing; ``families`` None: those that it has.

    ``looked_up``: what was just written is quick to look up, and slower to write.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        families: Sequence[str] | None = None,
        *,
        looked_up: bool = False,
    ) -> None:
        self.looked_up = looked_up
        self.written = False
        self._folder = folder
        self._name = name
        self._before = set(list_names(folder))
        options = database_options(looked_up=looked_up)
        with write_failures(self._folder):
            if families is None:
                families = Rdict.list_cf(str(folder), options)
            self.families = tuple(sorted({_DEFAULT, *families}))
            columns = {
                family: family_options(family, looked_up=looked_up) for family in self.families
            }
            self._rdict = Rdict(str(folder), options, columns)
            self._columns = {
                family: self._rdict.get_column_family(family)
                for family in self.families
                if family != _DEFAULT
            }
        self._columns[_DEFAULT] = self._rdict
        self._handles = {
            family: self._rdict.get_column_family_handle(family) for family in self.families
        }
        self._unlogged = WriteOptions()
        # A property, whatever the stubs of the driver say.
        self._unlogged.disable_wal = True  # type: ignore[method-assign,assignment]

    def get(self, family: str, key: bytes) -> bytes | None:
        with write_failures(self._folder):
            value: bytes | None = self._column(family).get(key)
        return value

    def scan(self, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        pairs = self._column(family).iter()
        pairs.seek(start)
        while pairs.valid():
            yield pairs.key(), pairs.value()
            pairs.next()
        with write_failures(self._folder):
            pairs.status()

    def write(
        self, pairs: Mapping[str, Iterable[Pair]], emptied: Mapping[str, Sequence[bytes]]
    ) -> None:
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for family, prefixes in emptied.items():
            self._column(family)
            for prefix in prefixes:
                batch.delete_range(prefix, _after(prefix), self._handles[family])
        for family, each in pairs.items():
            self._column(family)
            handle = self._handles[family]
            for key, value in each:
                if value is None:
                    delete(key, handle)
                else:
                    put(key, value, handle)
        self.written = True
        with write_failures(self._folder):
            self._rdict.write(batch, self._unlogged)

    def close(self) -> None:
        """Flush, free the lock, and remove what opening left and no database needs."""
        self._handles.clear()
        with write_failures(self._folder):
            for family, column in self._columns.items():
                if family != _DEFAULT:
                    column.close()
            self._rdict.close()
        settle(self._folder, self._before)

    def _column(self, family: str) -> Rdict:
        if family not in self._columns:
            raise StoreNotFoundError(
                f"no column family {family!r} in {self._name}",
                database=self._name,
                families=list(self.families),
            )
        return self._columns[family]


def _after(prefix: bytes) -> bytes:
    """Return the first key behind all that begin with the prefix, which is not all 0xFF."""
    kept = prefix.rstrip(bytes([_LAST_BYTE]))
    return kept[:-1] + bytes([kept[-1] + 1])

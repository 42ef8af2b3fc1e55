"""A store of pair files, opened for writing: all of it in memory until it is flushed."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sortedcontainers import SortedDict

from snapstore.backends.memory.damage import damage_of_the_source
from snapstore.backends.memory.view import DEFAULT, check_names
from snapstore.errors import StoreNotFoundError
from snapstore.model.store import ChangelogPosition
from snapstore.pairs.decode import PairFile
from snapstore.pairs.folder import add, merged, next_number, opened, sync_folder
from snapstore.pairs.header import PairHeader
from snapstore.ports import Pair


class MemoryWriter:
    """Implements StoreWriter. ``flush`` and ``close`` write what has changed, in one new file.

    The positions of the store stay what its newest file says.
    """

    def __init__(self, task_dir: Path, root: str) -> None:
        """Load what is there. Raises SourceDamagedError or CaptureError."""
        self._root = root
        self._folder = task_dir / root
        self._data: SortedDict[bytes, bytes] = SortedDict()
        self._changed: set[bytes] = set()
        self._newest: PairFile | None = None
        self._positions: tuple[ChangelogPosition, ...] = ()
        with damage_of_the_source(), opened(self._folder) as files:
            self._there = bool(files)
            if files:
                self._newest = files[-1].summary
                self._positions = self._newest.header.positions
                self._data.update(merged(files))

    @property
    def databases(self) -> tuple[str, ...]:
        return (self._root,) if self._there else ()

    def families(self, database: str) -> tuple[str, ...]:
        self._check(database, DEFAULT)
        return (DEFAULT,)

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        return dict(self.scan(database, family))

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        return self.scan_from(database, family, b"")

    def scan_from(self, database: str, family: str, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from a key on, in key order; nothing may be written meanwhile."""
        self._check(database, family)
        for key in self._data.irange(start):
            yield key, self._data[key]

    def get(self, database: str, family: str, key: bytes) -> bytes | None:
        self._check(database, family)
        return self._data.get(key)

    def write(
        self,
        database: str,
        pairs: Mapping[str, Iterable[Pair]],
        *,
        emptied: Mapping[str, Sequence[bytes]] | None = None,
    ) -> None:
        """Write by family: keys with a prefix in ``emptied`` go first, then ``pairs``."""
        for family in {*pairs, *(emptied or {})}:
            self._check(database, family)
        for prefix in (emptied or {}).get(DEFAULT, ()):
            for key in [*self._from(prefix)]:
                self._put(key, None)
        for key, value in pairs.get(DEFAULT, ()):
            self._put(key, value)

    def create(self, database: str, families: Sequence[str]) -> None:
        """Make the only database this store can have; raises StoreNotFoundError for another."""
        for family in {*families, DEFAULT}:
            check_names(self._root, database, family)
        self._there = True

    def drop(self, database: str) -> None:
        """Remove the store with its folder."""
        self._check(database, DEFAULT)
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._data.clear()
        self._changed.clear()
        self._newest = None
        self._positions = ()
        self._there = False

    def flush(self) -> None:
        """Make everything durable. Raises CaptureError or NoSpaceError."""
        if not self._there or (self._newest is not None and not self._changed):
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        number = next_number(self._folder)
        header = PairHeader(
            kind="base" if self._newest is None else "delta",
            number=number,
            previous=None if self._newest is None else self._newest.id,
            positions=self._positions,
        )
        self._newest = add(self._folder, header, self._unwritten())
        sync_folder(self._folder.parent)
        self._changed.clear()

    def close(self) -> None:
        self.flush()

    def _unwritten(self) -> Iterator[Pair]:
        if self._newest is None:
            yield from self._data.items()
            return
        for key in sorted(self._changed):
            yield key, self._data.get(key)

    def _put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._data.pop(key, None)
        else:
            self._data[key] = value
        self._changed.add(key)

    def _from(self, prefix: bytes) -> Iterator[bytes]:
        for key in self._data.irange(prefix):
            if not key.startswith(prefix):
                return
            yield key

    def _check(self, database: str, family: str) -> None:
        if not self._there:
            raise StoreNotFoundError(f"no database {database!r} in this store", databases=[])
        check_names(self._root, database, family)

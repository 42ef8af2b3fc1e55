"""One database, opened read-only through a folder of links, and never the folder of the source.

Opening writes a small file of the driver's own beside the database, so only folders that belong to
snapstore are opened.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DbClosedError,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
)

from snapstore.errors import (
    CaptureError,
    SourceDamagedError,
    StoreNotFoundError,
    StoreUnsupportedError,
)

_CACHE_BYTES = 32 << 20
_READAHEAD_BYTES = 2 << 20
_NAMED_FILE = re.compile(r"/((?:[0-9]+\.(?:sst|log|blob))|CURRENT|MANIFEST-[0-9]+)\b")

ALL_FILES = -1
"""For ``max_open_files``: open each table at once, and with it check its footer and index."""


class OpenError(Exception):
    """RocksDB would not open the folder. ``file`` is the one it named, if it named one."""

    def __init__(self, reason: str, file: str | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = file

    @property
    def out_of_descriptors(self) -> bool:
        """Whether it says nothing about the files, but about this process."""
        return "Too many open files" in self.reason


class OpenDatabase:
    """A database that was opened; ``database`` is its folder relative to the task directory."""

    def __init__(self, folder: Path, database: str, *, max_open_files: int = ALL_FILES) -> None:
        self.database = database
        self._folder = folder
        options = _options(max_open_files)
        try:
            with rocksdb_failures():
                self.families = tuple(sorted(Rdict.list_cf(str(folder), options)))
                self._rdict: Rdict | None = Rdict(
                    str(folder),
                    options=options,
                    column_families=dict.fromkeys(self.families, options),
                    access_type=AccessType.read_only(error_if_log_file_exist=False),
                )
        except RocksDBError as error:
            named = _NAMED_FILE.findall(error.reason)
            tables = [name for name in named if not name.startswith("MANIFEST")]
            raise OpenError(
                error.reason.replace(str(folder), database), next(iter(tables or named), None)
            ) from error

    def live_tables(self) -> Mapping[str, int]:
        """Return the tables that the MANIFEST calls live, and the sizes that it knows."""
        files = self._open_rdict().live_files()
        return {str(file["name"]).lstrip("/"): int(file["size"]) for file in files}

    def scan(self, family: str, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield every pair from a key on, in key order.

        Raises SourceDamagedError at a block that cannot be read: ``items()`` of the driver would
        end there as if it were the last.
        """
        if family not in self.families:
            raise StoreNotFoundError(
                f"no column family {family!r} in {self.database}",
                database=self.database,
                families=list(self.families),
            )
        rdict = self._open_rdict()
        handle = rdict if family == "default" else rdict.get_column_family(family)
        pairs = handle.iter(_read_options())
        del handle, rdict
        pairs.seek(start)
        while pairs.valid():
            yield pairs.key(), pairs.value()
            pairs.next()
        self._check_end(pairs, family)

    def close(self) -> None:
        """Let go of every table. Scans that are still under way raise instead of ending."""
        if self._rdict is not None:
            rdict, self._rdict = self._rdict, None
            rdict.close()

    def _check_end(self, pairs: RdictIter, family: str) -> None:
        self._open_rdict()
        try:
            with rocksdb_failures():
                pairs.status()
        except RocksDBError as error:
            if error.reason.startswith("Invalid argument"):
                raise StoreUnsupportedError(
                    f"{self.database}, column family {family}, cannot be read by snapstore, which "
                    f"is no damage: {error.reason}",
                    hint="only its application has the merge operator, or the like",
                    database=self.database,
                    family=family,
                    reason=error.reason,
                ) from error
            named = _NAMED_FILE.findall(error.reason)
            raise SourceDamagedError(
                f"{self.database}, column family {family}, cannot be read to its end",
                hint="the store must be rebuilt from its changelog, or from another snapshot",
                database=self.database,
                family=family,
                file=f"{self.database}/{named[0]}" if named else None,
                reason=error.reason.replace(str(self._folder), self.database),
            ) from error

    def _open_rdict(self) -> Rdict:
        if self._rdict is None:
            raise CaptureError(
                f"{self.database} was looked at after its files had been released",
                database=self.database,
            )
        return self._rdict


class RocksDBError(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def rocksdb_failures() -> Iterator[None]:
    """The driver raises plain ``Exception`` with RocksDB's status as the text."""
    try:
        yield
    except Exception as error:
        if type(error) not in {Exception, DbClosedError}:
            raise
        raise RocksDBError(" ".join(str(error).split())) from error


def _options(max_open_files: int) -> Options:
    options = Options(raw_mode=True)
    options.set_max_open_files(max_open_files)
    options.set_skip_stats_update_on_db_open(True)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(_CACHE_BYTES))
    blocks.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(blocks)
    return options


def _read_options() -> ReadOptions:
    options = ReadOptions()
    options.set_verify_checksums(True)
    options.set_readahead_size(_READAHEAD_BYTES)
    return options

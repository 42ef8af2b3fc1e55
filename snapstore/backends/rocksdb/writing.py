"""Note entries in a database that snapstore has staged, and rewrite nothing else."""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rocksdict import DBCompactionStyle, Options, Rdict, WriteOptions

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.databases import list_names
from snapstore.backends.rocksdb.opened import RocksDBError, rocksdb_failures
from snapstore.errors import CaptureError, NoSpaceError

_DISK_FULL = os.strerror(errno.ENOSPC)
_BOOKKEEPING = frozenset({"LOCK", "LOG", "rocksdict-config.json"})


def write_family(database: Path, family: str, entries: Mapping[bytes, bytes | None]) -> None:
    """Put or delete entries of one family, flush them, and make the folder durable.

    Every family is opened, or RocksDB refuses; compaction is off, or it would rewrite tables.

    Raises NoSpaceError when the disk is full, and CaptureError when RocksDB refuses, for instance
    because an application has it open.
    """
    before = set(list_names(database))
    with write_failures(database, family=family):
        _write(database, family, entries)
    settle(database, before)


@contextmanager
def write_failures(database: Path, **facts: str) -> Iterator[None]:
    """Turn what RocksDB refuses into NoSpaceError or CaptureError."""
    try:
        with rocksdb_failures():
            yield
    except RocksDBError as failure:
        if _DISK_FULL in failure.reason:
            raise NoSpaceError(
                f"the disk is full: {database} cannot be written (ENOSPC)",
                hint="free some space and run it again",
                path=str(database),
            ) from failure
        raise CaptureError(
            f"{database} cannot be written: {failure.reason}", path=str(database), **facts
        ) from failure


def _write(database: Path, family: str, entries: Mapping[bytes, bytes | None]) -> None:
    options = _options()
    families = Rdict.list_cf(str(database), options)
    missing = family not in families
    if missing and all(value is None for value in entries.values()):
        return
    rdict = Rdict(str(database), options, dict.fromkeys(families, options))
    handle = None
    try:
        if missing:
            handle = rdict.create_column_family(family, options)
        elif family != "default":
            handle = rdict.get_column_family(family)
        unlogged = WriteOptions()
        # A property, whatever the stubs of the driver say.
        unlogged.disable_wal = True  # type: ignore[method-assign,assignment]
        target = rdict if handle is None else handle
        for key, value in entries.items():
            if value is None:
                target.delete(key, unlogged)
            else:
                target.put(key, value, unlogged)
        target.flush()
    finally:
        # The lock stays taken as long as one of the two is open.
        if handle is not None:
            handle.close()
        rdict.close()


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(False)
    options.set_disable_auto_compactions(True)
    # Levelled compaction would move tables between levels while opening.
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_level_compaction_dynamic_level_bytes(False)
    return options


def settle(database: Path, before: set[str]) -> None:
    """After closing: remove what opening left and no database needs; flush the rest to the disk."""
    for name in sorted(set(list_names(database)) - before):
        path = database / name
        if name in _BOOKKEEPING or (names.is_log(name) and path.stat().st_size == 0):
            path.unlink()
        else:
            _sync(path)
    _sync(database / names.CURRENT)
    _sync(database)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

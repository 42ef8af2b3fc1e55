"""Real RocksDB stores: made at once, or by a process that keeps writing, flushing and compacting.

    python -m tests.support.rocksdb FOLDER PROGRESS SHAPE

writes the history of the backend contract into FOLDER until it is killed, and the number that it
is about to reach into the file PROGRESS.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rocksdict import (
    DBCompactionStyle,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView
from snapstore.testing.backend_contract import operation
from tests.support.processes import ChildProcess

PROJECT = Path(__file__).resolve().parents[2]
NOTED = b"applied"
OFFSETS = "offsets"


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is written.

    Without a write-ahead log all families are flushed together, as Kafka Streams 4.3 does it; with
    one, the history is spread over ``families`` that are flushed each by itself, as Quix does it.
    ``manifest_bytes``: where a new MANIFEST is begun. ``pause_seconds``: between batches of 20.
    """

    log: bool = False
    families: tuple[str, ...] = ("default",)
    memtable_bytes: int = 32 << 10
    manifest_bytes: int = 1 << 30
    pause_seconds: float = 0.001
    flush_every: int = 0


UNLOGGED = Shape()
LOGGED = Shape(log=True, families=("default", "second", "third"))


class Store:
    """A database opened for writing the history, from the number it has noted on."""

    def __init__(self, folder: Path, shape: Shape = UNLOGGED) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._shape = shape
        self._rdict = Rdict(
            str(folder),
            _options(shape),
            {name: _options(shape) for name in {*shape.families, OFFSETS, "default"}},
        )
        self._offsets = self._rdict.get_column_family(OFFSETS)
        noted = self._offsets.get(NOTED)
        self.next = 0 if noted is None else int.from_bytes(noted, "big") + 1
        self._write_options = WriteOptions()
        # A property, whatever the stubs of the driver say.
        self._write_options.disable_wal = not shape.log  # type: ignore[method-assign,assignment]

    def write(self, count: int) -> None:
        """Apply that many operations in one batch, together with the number of the last."""
        batch = WriteBatch(raw_mode=True)
        for number in range(self.next, self.next + count):
            done = operation(number)
            family = self._rdict.get_column_family_handle(family_of(done.key, self._shape))
            if done.value is None:
                batch.delete(done.key, family)
            else:
                batch.put(done.key, done.value, family)
        self.next += count
        offsets = self._rdict.get_column_family_handle(OFFSETS)
        batch.put(NOTED, (self.next - 1).to_bytes(8, "big"), offsets)
        self._rdict.write(batch, self._write_options)

    def flush(self) -> None:
        """Flush the data first, then the number."""
        for name in self._shape.families:
            family = self._rdict.get_column_family(name)
            family.flush()
            family.close()
        self._offsets.flush()

    def compact(self) -> None:
        self._rdict.compact_range(None, None)

    def close(self) -> None:
        self.flush()
        self._offsets.close()
        self._rdict.close()


def family_of(key: bytes, shape: Shape) -> str:
    return shape.families[int(key[-2:]) % len(shape.families)]


def make_database(folder: Path, applied: int, shape: Shape = UNLOGGED) -> Path:
    """Make, or go on with, a database that holds the history up to ``applied``; close it."""
    store = Store(folder, shape)
    while store.next <= applied:
        store.write(min(100, applied + 1 - store.next))
    store.close()
    return folder


def make_many_tables(folder: Path, count: int) -> None:
    """Make a database of so many tables of one pair each."""
    folder.mkdir(parents=True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    rdict = Rdict(str(folder), options)
    tables = []
    for number in range(count):
        table = folder.with_name(f"new-{number}.sst")
        writer = SstFileWriter(options)
        writer.open(str(table))
        writer[b"%08d" % number] = b"value"
        writer.finish()
        tables.append(str(table))
    ingestion = IngestExternalFileOptions()
    ingestion.set_move_files(True)
    rdict.ingest_external_file(tables, ingestion)
    rdict.close()


def locate(task_dir: Path, root: str) -> StoreLocation:
    return StoreLocation(
        store=StoreId("orders", task_dir.name, root.rpartition("/")[2]),
        layout="kafka-streams",
        backend="rocksdb",
        store_type="key-value",
        generation="kafka-streams-4.4",
        task_dir=task_dir,
        root=root,
    )


class LiveStore:
    """The writing process, and the store that it writes."""

    def __init__(self, folder: Path, shape: Shape, location: StoreLocation) -> None:
        self.location = location
        self._progress = folder.with_name(f"{folder.name}.progress")
        command = [sys.executable, "-m", "tests.support.rocksdb", str(folder)]
        command += [str(self._progress), msgspec.json.encode(shape).decode()]
        environment = PROJECT
        self.process = ChildProcess(
            ["env", "-C", str(environment), *command], folder.with_name(f"{folder.name}.output")
        )

    def begun(self) -> int:
        return int.from_bytes(self._progress.read_bytes(), "big")

    def wait_begun(self, number: int, timeout: float = 120) -> None:
        deadline = time.monotonic() + timeout
        while not (self._progress.exists() and self.begun() >= number):
            assert self.process.running, self.process.tail()
            assert time.monotonic() < deadline, self.process.tail()
            time.sleep(0.01)

    def crash(self) -> None:
        self.process.kill()


class RocksDBMaker:
    """Implements StoreMaker of the backend contract."""

    exact = True

    def __init__(self, work_dir: Path, shape: Shape = UNLOGGED) -> None:
        self.shape = shape
        self._work_dir = work_dir

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        location = locate(task_dir, "rocksdb/counts")
        make_database(location.path, applied, self.shape)
        return location

    def extend(self, location: StoreLocation, applied: int) -> None:
        make_database(location.path, applied, self.shape)

    @contextmanager
    def writing(self, task_dir: Path) -> Iterator[LiveStore]:
        self._work_dir.mkdir(exist_ok=True)
        link = self._work_dir / "live"
        link.symlink_to(task_dir / "rocksdb" / "counts")
        live = LiveStore(link, self.shape, locate(task_dir, "rocksdb/counts"))
        try:
            live.wait_begun(2000)
            yield live
        finally:
            live.crash()
            link.unlink()

    def applied(self, view: StoreView) -> int | None:
        (database,) = view.databases
        noted = view.entries(database, OFFSETS).get(NOTED)
        return None if noted is None else int.from_bytes(noted, "big")

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        (database,) = view.databases
        found: dict[bytes, bytes] = {}
        for family in view.families(database):
            if family != OFFSETS:
                entries = view.entries(database, family)
                assert not entries.keys() & found.keys()
                found |= entries
        return found


def raw_contents(folder: Path, scratch: Path) -> dict[str, dict[bytes, bytes]]:
    """Read every family of a closed database from a copy, without snapstore."""
    copy = scratch / "raw"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    options = Options(raw_mode=True)
    names = Rdict.list_cf(str(copy), options)
    rdict = Rdict(str(copy), options, {name: Options(raw_mode=True) for name in names})
    try:
        return {name: _all(rdict.get_column_family(name)) for name in names}
    finally:
        rdict.close()


def _all(family: Rdict) -> dict[bytes, bytes]:
    pairs = family.iter()
    pairs.seek_to_first()
    found = {}
    while pairs.valid():
        found[pairs.key()] = pairs.value()
        pairs.next()
    pairs.status()
    family.close()
    return found


def _options(shape: Shape) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(not shape.log)
    options.set_write_buffer_size(shape.memtable_bytes)
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_level_zero_file_num_compaction_trigger(3)
    options.set_max_manifest_file_size(shape.manifest_bytes)
    options.set_max_total_wal_size(8 * shape.memtable_bytes)
    return options


def _write_for_ever(folder: Path, progress: Path, shape: Shape) -> None:
    store = Store(folder.resolve(), shape)
    batches = 0
    with progress.open("wb", buffering=0) as reached:
        while True:
            os.pwrite(reached.fileno(), (store.next + 19).to_bytes(8, "big"), 0)
            store.write(20)
            batches += 1
            if shape.flush_every and batches % shape.flush_every == 0:
                store.flush()
            time.sleep(shape.pause_seconds)


if __name__ == "__main__":
    _write_for_ever(
        Path(sys.argv[1]), Path(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=Shape)
    )

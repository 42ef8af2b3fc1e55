"""Real RocksDB stores, laid out as Kafka Streams 4.3 and later leaves them after a clean close."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rocksdict import (
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    SstFileWriter,
    WriteOptions,
)

APPLICATION = "orders"
TASKS = 4
_STORE = "counts"
_CHANGELOG = f"{APPLICATION}-{_STORE}-changelog"
_VALUE_BYTES = 4096
_LITTER = ("LOG", "rocksdict-config.json")


def make_application(
    state_dir: Path, tables_of_a_task: Iterable[int], *, tasks: int = TASKS
) -> None:
    """Make tasks with one store each, of tables of about so many bytes that do not compress.

    Beside those tables each store has a small one for its applied offset.
    """
    sizes = list(tables_of_a_task)
    for task in range(tasks):
        _make_store(_folder(state_dir, task), task, sizes)


def rewrite_a_table(state_dir: Path, task: int, table: int, times: int) -> None:
    """Change one key of one table and compact it: it gets a new name and new bytes."""
    rdict = _open(_folder(state_dir, task))
    key = b"%06d-%08d" % (table, 0)
    rdict.put(key, os.urandom(_VALUE_BYTES), _unlogged())
    rdict.flush()
    rdict.compact_range(key, b"%06d-%08d" % (table, 99_999_999))
    _note(rdict, task, 1000 + times)
    rdict.close()
    _tidy(_folder(state_dir, task))


def digests(folder: Path, pattern: str = "*.sst") -> Mapping[str, str]:
    """Return the hash of every file below that fits, by its path."""
    return {
        str(path.relative_to(folder)): _digest(path)
        for path in sorted(folder.rglob(pattern))
        if path.is_file()
    }


def require_restored(wanted: Mapping[str, str], target: Path) -> None:
    """Raise AssertionError unless every table with its digest is in the target."""
    found = digests(target)
    wrong = sorted(name for name, digest in wanted.items() if found.get(name) != digest)
    if wrong or not wanted:
        raise AssertionError(f"{len(wrong)} of {len(wanted)} tables differ: {wrong[:3]}")


def size_of(folder: Path) -> tuple[int, int]:
    """Return how many files there are below a folder, and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def _folder(state_dir: Path, task: int) -> Path:
    return state_dir / APPLICATION / f"0_{task}" / "rocksdb" / _STORE


def _make_store(folder: Path, task: int, sizes: list[int]) -> None:
    folder.mkdir(parents=True)
    rdict = _open(folder)
    tables = []
    for number, size in enumerate(sizes):
        table = folder.with_name(f"new-{number}.sst")
        writer = SstFileWriter(_options())
        writer.open(str(table))
        value_bytes = min(_VALUE_BYTES, size)
        random = memoryview(os.urandom(size))
        for row in range(size // value_bytes):
            at = row * value_bytes
            writer[b"%06d-%08d" % (number, row)] = bytes(random[at : at + value_bytes])
        writer.finish()
        tables.append(str(table))
    ingestion = IngestExternalFileOptions()
    ingestion.set_move_files(True)
    rdict.ingest_external_file(tables, ingestion)
    _note(rdict, task, 1000)
    rdict.close()
    _tidy(folder)


def _open(folder: Path) -> Rdict:
    return Rdict(str(folder), _options(), {name: _options() for name in ("default", "offsets")})


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_disable_auto_compactions(True)
    options.set_compression_type(DBCompressionType.none())
    return options


def _unlogged() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign,assignment]
    return options


def _note(rdict: Rdict, task: int, applied_offset: int) -> None:
    family = rdict.get_column_family("offsets")
    family.put(f"{_CHANGELOG}-{task}".encode(), applied_offset.to_bytes(8, "big"), _unlogged())
    family.put(b"status", bytes(8), _unlogged())
    family.flush()
    family.close()


def _tidy(folder: Path) -> None:
    """Leave out what is no part of the store, and empty files: aws hangs 60 s over each of them."""
    for path in folder.iterdir():
        if path.name in _LITTER or not path.stat().st_size:
            path.unlink()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

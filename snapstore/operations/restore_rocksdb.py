"""Ask whether the RocksDB of the application in the target can read the snapshots."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from snapstore.errors import WrongGenerationError
from snapstore.model.conditions import numbers_of
from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.model.rocksdb_format import (
    READ_SINCE,
    ROCKSDB_OF,
    RocksDBWriter,
    can_read,
    is_options,
    newest,
    parse_options,
    writer_of,
)
from snapstore.model.snapshot import Manifest
from snapstore.model.store import StoreLocation

_LOOKED_AT = 20
"""Stores of the target whose OPTIONS files are read: one application has opened all of them."""


def check_rocksdb(
    manifests: Iterable[Manifest], found: Sequence[StoreLocation], version: str | None = None
) -> list[str]:
    """Return a sentence where snapshots are of a newer RocksDB than the one that will open them.

    That is the RocksDB of Kafka Streams ``version``, where given, else the one that has opened the
    stores in the target. Raises WrongGenerationError where that one cannot read their tables, and
    ConfigError for a text that is no version. An empty target tells nothing by itself.
    """
    writers: dict[str, list[RocksDBWriter | None]] = {}
    for manifest in manifests:
        application = manifest.description.store.application
        writers.setdefault(application, []).append(writer_of(manifest.files))
    notes = []
    for application, each_writer in writers.items():
        here = [each for each in found if each.store.application == application]
        writer = newest(each_writer)
        if writer is None:
            continue
        if version is None:
            reader = newest(_opened_by(each) for each in here[:_LOOKED_AT])
            opened = "its stores in the target by RocksDB "
        else:
            reader = _of_kafka_streams(version)
            opened = f"Kafka Streams {version} comes with RocksDB "
        by = f"the snapshots of {application} were written by RocksDB {writer.text}"
        if reader is None and version is not None:
            notes.append(f"{by}; which one Kafka Streams {version} comes with is not known")
        if reader is None or writer.version <= reader.version:
            continue
        told = f"{by}, and {opened}{reader.text}"
        if not can_read(reader.version, writer):
            raise _unreadable(told, writer, reader)
        notes.append(
            f"{told}, which reads tables of format {writer.table_format}, too: no other "
            "difference is known"
        )
    return notes


def _of_kafka_streams(version: str) -> RocksDBWriter | None:
    known = ROCKSDB_OF.get(numbers_of(version)[:2])
    return None if known is None else RocksDBWriter(version=known)


def _opened_by(location: StoreLocation) -> RocksDBWriter | None:
    """Return which RocksDB has opened a store last: it wrote the newest of its OPTIONS files."""
    # os.walk passes over folders that went away meanwhile.
    newest_files = [
        Path(folder, max(options, key=_number))
        for folder, _, names in os.walk(location.path)
        if (options := [name for name in names if is_options(name)])
    ]
    return newest(map(_read, newest_files))


def _read(path: Path) -> RocksDBWriter | None:
    try:
        return parse_options(read_regular(path))
    except (OSError, NotRegularError):
        # It was replaced, or nobody may read it: then nothing is known.
        return None


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _unreadable(told: str, writer: RocksDBWriter, reader: RocksDBWriter) -> WrongGenerationError:
    since = READ_SINCE.get(writer.table_format or 0)
    needed = "a newer one" if since is None else f"RocksDB {'.'.join(map(str, since))} or newer"
    return WrongGenerationError(
        f"{told}: tables of format {writer.table_format} need {needed}",
        hint="upgrade the application and name its version with --kafka-streams-version, or "
        "restore an older snapshot",
        written_by=writer.text,
        target=reader.text,
        table_format=writer.table_format,
    )

"""Which RocksDB wrote a database, and which one can read it: read from its OPTIONS files.

A table is read by the RocksDB versions that know its format (include/rocksdb/table.h,
BlockBasedTableOptions::format_version). Nothing else is known to keep an older RocksDB from opening
a database that a newer one wrote, but for column families: the layouts judge those.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from snapstore.model.snapshot import Description, FileEntry

Version = tuple[int, int, int]

READ_SINCE: Final[Mapping[int, Version]] = {
    2: (3, 10, 0),
    3: (5, 15, 0),
    4: (5, 16, 0),
    5: (6, 6, 0),
    6: (8, 6, 0),
    7: (10, 4, 0),
}
"""The first version of RocksDB that reads tables of a format."""

ROCKSDB_OF: Final[Mapping[tuple[int, int], Version]] = {
    (4, 0): (9, 7, 3),
    (4, 2): (10, 1, 3),
    (4, 3): (10, 1, 3),
    (4, 4): (10, 1, 3),
}
"""The RocksDB that comes with a version of Kafka Streams (rocksdbjni beside its jar)."""

_OPTIONS = re.compile(r"OPTIONS-(\d+)")
_VERSION = re.compile(r"^\s*rocksdb_version=(\d+)\.(\d+)\.(\d+)\s*$", re.MULTILINE)
_FORMAT = re.compile(r"^\s*format_version=(\d+)\s*$", re.MULTILINE)


class RocksDBWriter(msgspec.Struct, frozen=True, kw_only=True):
    """A version of RocksDB, and the newest table format that it was told to write."""

    version: Version
    table_format: int | None = None

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))


def parse_options(content: bytes) -> RocksDBWriter | None:
    """Return what an OPTIONS file says; None for one that does not name its version."""
    text = content.decode("utf-8", "replace")
    found = _VERSION.search(text)
    if found is None:
        return None
    formats = [int(number) for number in _FORMAT.findall(text)]
    major, minor, patch = map(int, found.groups())
    return RocksDBWriter(version=(major, minor, patch), table_format=max(formats, default=None))


def is_options(name: str) -> bool:
    """Whether a file of that name is an OPTIONS file."""
    return _OPTIONS.fullmatch(name.rpartition("/")[2]) is not None


def newest(writers: Iterable[RocksDBWriter | None]) -> RocksDBWriter | None:
    """Combine several: the newest version, and the newest table format."""
    known = [each for each in writers if each is not None]
    if not known:
        return None
    formats = [each.table_format for each in known if each.table_format is not None]
    return RocksDBWriter(
        version=max(each.version for each in known), table_format=max(formats, default=None)
    )


def writer_of(entries: Iterable[FileEntry]) -> RocksDBWriter | None:
    """Return what the OPTIONS files of a snapshot say; they travel inside its manifest."""
    return newest(
        parse_options(entry.inline)
        for entry in entries
        if entry.inline is not None and is_options(entry.name)
    )


def with_writer(description: Description, entries: Iterable[FileEntry]) -> Description:
    """Note in the description of a snapshot which RocksDB wrote its files."""
    writer = writer_of(entries)
    if writer is None:
        return description
    return msgspec.structs.replace(
        description, rocksdb_version=writer.text, table_format=writer.table_format
    )


def can_read(reader: Version, writer: RocksDBWriter) -> bool:
    """Whether tables of that writer are known to the reader; a format not listed here is not."""
    if writer.table_format is None or writer.version <= reader:
        return True
    since = READ_SINCE.get(writer.table_format)
    return since is not None and reader >= since

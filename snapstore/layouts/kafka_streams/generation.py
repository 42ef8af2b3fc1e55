"""Which generation of Kafka Streams wrote a store: read from the MANIFEST of its databases.

From 4.3 on each database has a column family `offsets`. The MANIFEST is a log of edits (format:
RocksDB's log_format.h and version_edit.cc), and adding a family is an edit with tag 201 and the
name. A database may be opened only through a copy; reading these bytes disturbs nobody.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from snapstore.layouts.kafka_streams.family import FAMILY
from snapstore.layouts.kafka_streams.names import BEFORE_4_3, FROM_4_3
from snapstore.model.regular_file import NotRegularError, open_regular, read_regular

_BLOCK_BYTES = 32 * 1024
_HEADER_BYTES = 7
_RECYCLABLE_HEADER_BYTES = 11
_RECYCLABLE_TYPES = range(5, 9)
_FAMILY_ADDED = b"\xc9\x01" + bytes([len(FAMILY)]) + FAMILY.encode()


def generation_of(databases: Iterable[Path]) -> str:
    """Return the newer generation as soon as one database has the family.

    A segment may be caught before it has got its families, and a database while it is created: a
    store of which no database can be read counts as the older. The offsets are decided from the
    captured copy all the same, not from this.
    """
    return FROM_4_3 if any(has_offsets_family(one) for one in databases) else BEFORE_4_3


def has_offsets_family(database: Path) -> bool:
    """Whether the MANIFEST in force adds the family; False when there is none to read."""
    try:
        name = read_regular(database / "CURRENT").decode("ascii").strip()
        if not name.startswith("MANIFEST-") or "/" in name:
            return False
        return _contains(database / name, _FAMILY_ADDED)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError, NotRegularError):
        return False


def _contains(manifest: Path, needle: bytes) -> bool:
    tail = b""
    for payload in _payloads(manifest):
        window = tail + payload
        if needle in window:
            return True
        tail = window[-len(needle) :]
    return False


def _payloads(manifest: Path) -> Iterator[bytes]:
    """Yield the log's records without their headers, which may stand in the middle of an edit."""
    with os.fdopen(open_regular(manifest), "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            start = 0
            while start + _HEADER_BYTES <= len(block):
                length = int.from_bytes(block[start + 4 : start + 6], "little")
                recyclable = block[start + 6] in _RECYCLABLE_TYPES
                start += _RECYCLABLE_HEADER_BYTES if recyclable else _HEADER_BYTES
                yield block[start : start + length]
                start += length

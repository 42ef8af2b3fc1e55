"""The column family `offsets` (from Kafka Streams 4.3 on, KIP-1035).

Keys are ``TOPIC-PARTITION``, split at the last hyphen; values 8 bytes, big-endian, signed. Two
keys are no offsets: ``position`` (KIP-796) and ``status``, which is 1 while a store is open and 0
after it was closed; a transactional store has no status.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from snapstore.errors import SourceDamagedError
from snapstore.layouts.kafka_streams.checkpoint import UNKNOWN
from snapstore.model.identity import ChangelogPartition

FAMILY = "offsets"

Status = Literal["open", "closed"]

_STATUS: dict[int, Status] = {0: "closed", 1: "open"}
_NO_OFFSETS = (b"position", b"status")
_PARTITION_DIGITS = 10


class FamilyContent(msgspec.Struct, frozen=True, kw_only=True):
    """What one database says: its offsets as they stand (None: not known), and its status."""

    offsets: Mapping[ChangelogPartition, int | None]
    status: Status | None


def read_family(entries: Mapping[bytes, bytes], database: str) -> FamilyContent:
    """Decode the family. Keys of other forms are left out.

    Raises SourceDamagedError at a value that is not what its key promises.
    """
    offsets: dict[ChangelogPartition, int | None] = {}
    for key, value in entries.items():
        changelog = _changelog(key)
        if changelog is not None:
            number = _long(value, key, database)
            if number < 0 and number != UNKNOWN:
                raise _damaged(key, value, database)
            offsets[changelog] = None if number == UNKNOWN else number
    return FamilyContent(offsets=offsets, status=_status(entries, database))


def offset_entry(changelog: ChangelogPartition, offset: int) -> tuple[bytes, bytes]:
    """Return the key and the value that note an offset."""
    key = f"{changelog.topic}-{changelog.partition}".encode()
    return key, offset.to_bytes(8, "big", signed=True)


def status_entry(status: Status) -> tuple[bytes, bytes]:
    """Return the key and the value that mark a store as open or closed."""
    number = next(number for number, name in _STATUS.items() if name == status)
    return b"status", number.to_bytes(8, "big", signed=True)


def _changelog(key: bytes) -> ChangelogPartition | None:
    if key in _NO_OFFSETS:
        return None
    topic, hyphen, number = key.rpartition(b"-")
    if not (topic and hyphen and number.isdigit() and topic.isascii()):
        return None
    if len(number) > _PARTITION_DIGITS:
        return None
    return ChangelogPartition(topic.decode("ascii"), int(number))


def _status(entries: Mapping[bytes, bytes], database: str) -> Status | None:
    value = entries.get(b"status")
    if value is None:
        return None
    number = _long(value, b"status", database)
    if number not in _STATUS:
        raise _damaged(b"status", value, database)
    return _STATUS[number]


def _long(value: bytes, key: bytes, database: str) -> int:
    if len(value) != 8:
        raise _damaged(key, value, database)
    return int.from_bytes(value, "big", signed=True)


def _damaged(key: bytes, value: bytes, database: str) -> SourceDamagedError:
    name = key.decode(errors="backslashreplace")
    return SourceDamagedError(
        f"{database}: the family {FAMILY} holds {value[:16].hex()} under {name!r}, which is no "
        "number it could mean",
        database=database,
        key=name,
    )

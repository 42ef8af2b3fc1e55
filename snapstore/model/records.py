"""What a changelog record becomes in a Kafka Streams store: the rules of its own restoration.

Sources: `RecordConverters`, `StateManagerUtil` and `HeadersSerializer` of Kafka Streams 4.3.1
(KIP-258 for timestamps, KIP-1271 for headers). The key is the store's own key in every format but
the versioned one, which `snapstore.model.versioned` knows.
"""

from collections.abc import Callable, Iterable
from struct import Struct as Layout
from typing import Literal

from snapstore.errors import NotReplayableError
from snapstore.model.changelog import ChangelogRecord, Headers

StoreFormat = Literal["plain", "timestamped", "headers", "session-headers"]
KeySchema = Literal["window", "session"]

FAMILIES: dict[StoreFormat, str] = {
    "plain": "default",
    "timestamped": "keyValueWithTimestamp",
    "headers": "keyValueWithTimestampAndHeaders",
    "session-headers": "sessionKeyValueWithHeaders",
}
OFFSETS_FAMILY = "offsets"

_TIMESTAMP = Layout(">q")
_SEQUENCE_BYTES = 4
_NO_HEADERS = b"\0"


def format_of(families: frozenset[str]) -> StoreFormat:
    """Return the format that the column families of a database show.

    Raises NotReplayableError for families of no known format. A versioned store looks like a plain
    one here; its changelog's `min.compaction.lag.ms` tells.
    """
    unknown = families - set(FAMILIES.values()) - {OFFSETS_FAMILY}
    if unknown or "default" not in families:
        raise NotReplayableError(
            f"column families of no known store format: {', '.join(sorted(families))}",
            hint="take a snapshot of the files, with the application closed",
            families=sorted(families),
        )
    for form in ("session-headers", "headers", "timestamped"):
        if FAMILIES[form] in families:
            return form
    return "plain"


def older_families(form: StoreFormat, families: frozenset[str]) -> tuple[str, ...]:
    """Return the families that hold entries from before an upgrade of the store's format.

    An entry moves out of them when its key is written: whoever writes a key must delete it there.
    """
    return tuple(sorted(families - {FAMILIES[form], OFFSETS_FAMILY}))


def value_converter(form: StoreFormat) -> Callable[[ChangelogRecord], bytes | None]:
    """Return the function from a record to the value to be stored; None deletes the key."""
    return _CONVERTERS[form]


def to_pairs(
    form: StoreFormat, records: Iterable[ChangelogRecord]
) -> list[tuple[bytes, bytes | None]]:
    """Return key and value to be stored of each record, None to delete; records without a key are
    left out.
    """
    if form == "plain":
        return [(record.key, record.value) for record in records if record.key is not None]
    convert = _CONVERTERS[form]
    return [(record.key, convert(record)) for record in records if record.key is not None]


def segment_timestamp_ms(schema: KeySchema, key: bytes) -> int:
    """Return the time in the key that decides which segment an entry belongs to.

    A window key ends with its start and a sequence number, a session key with its end and start.
    Raises NotReplayableError when the key is too short for its schema.
    """
    end = len(key) - (_SEQUENCE_BYTES if schema == "window" else _TIMESTAMP.size)
    start = end - _TIMESTAMP.size
    if start < 0:
        raise NotReplayableError(
            f"a key of {len(key)} bytes is no {schema} key",
            hint="snapstore does not know the keys of this store",
        )
    return int(_TIMESTAMP.unpack_from(key, start)[0])


def serialize_headers(headers: Headers) -> bytes:
    """Return headers as Kafka Streams stores them: their length, their number, then each.

    All lengths are zig-zag varints; a value that is None has the length -1.
    """
    if not headers:
        return _NO_HEADERS
    parts = [_varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += [_varint(len(encoded)), encoded]
        parts += [_varint(-1)] if value is None else [_varint(len(value)), value]
    content = b"".join(parts)
    return _varint(len(content)) + content


def _plain(record: ChangelogRecord) -> bytes | None:
    return record.value


def _timestamped(record: ChangelogRecord) -> bytes | None:
    if record.value is None:
        return None
    return _TIMESTAMP.pack(record.timestamp_ms) + record.value


def _with_headers(record: ChangelogRecord) -> bytes | None:
    if record.value is None:
        return None
    timestamp = _TIMESTAMP.pack(record.timestamp_ms)
    return serialize_headers(record.headers) + timestamp + record.value


def _session_with_headers(record: ChangelogRecord) -> bytes | None:
    if record.value is None:
        return None
    return serialize_headers(record.headers) + record.value


_CONVERTERS: dict[StoreFormat, Callable[[ChangelogRecord], bytes | None]] = {
    "plain": _plain,
    "timestamped": _timestamped,
    "headers": _with_headers,
    "session-headers": _session_with_headers,
}


def _varint(number: int) -> bytes:
    rest = ((number << 1) ^ (number >> 31)) & 0xFFFF_FFFF
    content = bytearray()
    while rest > 0x7F:
        content.append((rest & 0x7F) | 0x80)
        rest >>= 7
    content.append(rest)
    return bytes(content)

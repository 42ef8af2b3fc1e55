"""What a changelog record of Quix Streams becomes in its store: the rules of its own recovery.

Source: `quixstreams/state/recovery.py`, `state/metadata.py` and `state/rocksdb/partition.py` of
Quix Streams 3.28. Key and value are those of the store, byte for byte; headers tell the rest.
"""

import struct

import msgspec

from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.model.changelog import ChangelogRecord

DEFAULT = "default"
METADATA = "__metadata__"
TTL_INDEX = "__ttl_index__"
TTL_SYSTEM = "__ttl_system__"
TTL_PENDING = "__ttl_backfill_pending__"
TTL_STAMPED = "__ttl_backfill_stamped__"
TTL_BACKUP = "__ttl_adopt_backup__"

LOCAL_FAMILIES = frozenset({METADATA, TTL_INDEX, TTL_PENDING, TTL_STAMPED, TTL_BACKUP})
"""Families that an application keeps for itself: a record of one is passed over."""

OFFSET_KEY = b"__changelog_offset__"
TTL_ENABLED_KEY = b"__ttl_enabled__"
TTL_VERSION_KEY = b"__ttl_format_version__"
TTL_VERSION = 2
TTL_UNFINISHED_KEYS = (
    b"__ttl_adopt_pending__",
    b"__ttl_backfill_in_progress__",
    b"__ttl_backfill_progress__",
)
"""Marks in the metadata of a store whose values are being rewritten."""

_NEVER_EXPIRES = b"\xff" * 8
_STAMP_BYTES = 8
_FAMILY_HEADER = "__column_family__"
_PROCESSED_HEADER = "__processed_tp_offsets__"
_STAMPED_HEADER = "__ttl_stamped__"

_NUMBER = struct.Struct(">Q")


class QuixChange(msgspec.Struct, frozen=True, gc=False):
    """A put, or a deletion (``value`` None), in one family.

    ``processed`` are the offsets of the source records, by topic, that led to it; None where the
    record does not tell. ``stamped``: the value begins with the time at which it expires.
    """

    family: str
    key: bytes
    value: bytes | None
    processed: dict[str, int] | None = None
    stamped: bool = False


def read_change(record: ChangelogRecord) -> QuixChange:
    """Read a changelog record.

    Raises NotReplayableError for one that Quix Streams has not written.
    """
    headers = dict(record.headers)
    family = headers.get(_FAMILY_HEADER)
    if not family or record.key is None:
        raise NotReplayableError(
            f"the record at offset {record.offset} has no header {_FAMILY_HEADER} or no key",
            hint="the topic is not the changelog of a store of Quix Streams",
            offset=record.offset,
        )
    try:
        processed = msgspec.json.decode(
            headers.get(_PROCESSED_HEADER) or b"null", type=dict[str, int] | None
        )
        name = family.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotReplayableError(
            f"the headers of the record at offset {record.offset} cannot be read: {error}",
            offset=record.offset,
        ) from error
    return QuixChange(
        family=name,
        key=record.key,
        value=record.value,
        processed=processed,
        stamped=bool(headers.get(_STAMPED_HEADER)),
    )


def index_key(change: QuixChange) -> bytes | None:
    """Return the key that a stamped value has in the index of expiries; None for one that stays."""
    if change.value is None or change.value[:_STAMP_BYTES] == _NEVER_EXPIRES:
        return None
    if len(change.value) < _STAMP_BYTES:
        raise NotReplayableError(
            f"a value of {len(change.value)} bytes cannot begin with the time of its expiry",
            key=ascii(change.key),
        )
    return change.value[:_STAMP_BYTES] + change.key


def encode_number(number: int) -> bytes:
    return _NUMBER.pack(number)


def decode_offset(content: bytes) -> int:
    """Read the applied offset that a store notes. Raises SourceDamagedError."""
    if len(content) != _NUMBER.size:
        raise SourceDamagedError(f"an offset of {len(content)} bytes is none of Quix Streams")
    return int(_NUMBER.unpack(content)[0])

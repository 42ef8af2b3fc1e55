"""What a changelog record of Faust becomes in its table: key and value as they are.

Source: `faust/stores/rocksdb.py` of faust-streaming 0.15. The offset lies among the entries.
"""

from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.model.changelog import ChangelogRecord

FAMILY = "default"
OFFSET_KEY = b"__faust\0offset__"


def read_pair(record: ChangelogRecord) -> tuple[bytes, bytes | None]:
    """Return what is to be written; None deletes. Raises NotReplayableError."""
    if record.key is None or record.key == OFFSET_KEY:
        raise NotReplayableError(
            f"the record at offset {record.offset} has no key that a table can have",
            hint="the topic is not the changelog of a table of Faust",
            offset=record.offset,
        )
    return record.key, record.value


def encode_offset(offset: int) -> bytes:
    return b"%d" % offset


def decode_offset(content: bytes) -> int:
    """Read the applied offset, inclusive, that a table notes. Raises SourceDamagedError."""
    if not content.isdigit():
        raise SourceDamagedError(f"{content!a} is no offset of Faust")
    return int(content)

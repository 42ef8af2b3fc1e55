"""Read pair files, and believe nothing that is not exactly as it was written."""

import hashlib
import zlib
from collections.abc import Iterator

import msgspec

from snapstore.errors import BlobCorruptError
from snapstore.model.store import ByteSource
from snapstore.pairs.encode import DELETED, END, MAGIC, MAX_SIZE, SIZES, U32
from snapstore.pairs.header import PairHeader, decode_header
from snapstore.ports import Pair

_HASH_BYTES = 32
_MAX_HEADER_BYTES = 16 << 20
_LEAST_PAIR_BYTES = 8


class PairFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file by its beginning and its end: ``id`` and ``pairs`` are what the end claims."""

    header: PairHeader
    id: str
    pairs: int
    size: int


def read_summary(source: ByteSource, name: str) -> PairFile:
    """Read the beginning and the end of a file, not its pairs.

    Raises BlobCorruptError, ManifestInvalidError, or FormatUnsupportedError.
    """
    header, position = _header(source, name)
    tail = END.size + _HASH_BYTES
    if source.size < position + tail:
        raise _damaged(name, "it ends too early")
    end = _exactly(source, tail, source.size - tail, name)
    zero, count = END.unpack_from(end)
    if zero:
        raise _damaged(name, "its end is not where it should be")
    if count * _LEAST_PAIR_BYTES > source.size:
        raise _damaged(name, f"it cannot hold the {count} pairs that it claims")
    return PairFile(header=header, id=end[END.size :].hex(), pairs=count, size=source.size)


def read_pairs(source: ByteSource, name: str) -> Iterator[Pair]:
    """Yield the pairs of a file in key order; those of a block once its checksum was right.

    Raises what ``read_summary`` raises, at the latest after the last pair: only a file that was
    read to its end is known to be whole.
    """
    summary = read_summary(source, name)
    digest = hashlib.sha256()
    deletes = summary.header.kind == "delta"
    position = 0
    count = 0
    last: bytes | None = None
    for piece, is_payload in _checked(source, name):
        digest.update(piece)
        position += len(piece)
        if is_payload:
            for pair in _parse(piece, last, name, deletes=deletes):
                last = pair[0]
                count += 1
                yield pair
    if position != source.size - _HASH_BYTES:
        raise _damaged(name, "bytes follow its end")
    if count != summary.pairs:
        raise _damaged(name, f"it holds {count} pairs and claims {summary.pairs}")
    if digest.hexdigest() != summary.id:
        raise _damaged(name, "it does not hash to its ID")


def _checked(source: ByteSource, name: str) -> Iterator[tuple[bytes, bool]]:
    """Yield all bytes up to the ID, and of each piece whether it is a payload of pairs."""
    _, position = _header(source, name)
    yield _exactly(source, position, 0, name), False
    while True:
        head = _exactly(source, U32.size, position, name)
        (length,) = U32.unpack(head)
        if length == 0:
            yield _exactly(source, END.size, position, name), False
            return
        if position + U32.size + length + U32.size + END.size + _HASH_BYTES > source.size:
            raise _damaged(name, f"a block at byte {position} is longer than the file")
        payload = _exactly(source, length, position + U32.size, name)
        check = _exactly(source, U32.size, position + U32.size + length, name)
        if U32.unpack(check)[0] != zlib.crc32(payload):
            raise _damaged(name, f"the block at byte {position} has a wrong checksum")
        yield head, False
        yield payload, True
        yield check, False
        position += U32.size + length + U32.size


def _header(source: ByteSource, name: str) -> tuple[PairHeader, int]:
    """Return the header and the position after it."""
    start = _exactly(source, len(MAGIC) + U32.size, 0, name)
    if not start.startswith(MAGIC):
        raise _damaged(name, "it does not begin like a pair file")
    (length,) = U32.unpack_from(start, len(MAGIC))
    if length > min(_MAX_HEADER_BYTES, source.size):
        raise _damaged(name, "its header is longer than one can be")
    rest = _exactly(source, length + U32.size, len(start), name)
    if U32.unpack_from(rest, length)[0] != zlib.crc32(rest[:length]):
        raise _damaged(name, "its header has a wrong checksum")
    return decode_header(rest[:length], name), len(start) + len(rest)


def _parse(payload: bytes, last: bytes | None, name: str, *, deletes: bool) -> Iterator[Pair]:
    position, end = 0, len(payload)
    while position < end:
        if end - position < SIZES.size:
            raise _damaged(name, "a block ends within a pair")
        key_size, value_size = SIZES.unpack_from(payload, position)
        deleted = value_size == DELETED
        start = position + SIZES.size
        middle = start + key_size
        position = middle if deleted else middle + value_size
        if position > end or key_size > MAX_SIZE:
            raise _damaged(name, "a block ends within a pair")
        key = payload[start:middle]
        if last is not None and key <= last:
            raise _damaged(name, "its keys do not ascend")
        if deleted and not deletes:
            raise _damaged(name, "a base deletes a key")
        last = key
        yield key, None if deleted else payload[middle:position]


def _exactly(source: ByteSource, length: int, position: int, name: str) -> bytes:
    """Return so many bytes; a source may give fewer at a time."""
    if position + length > source.size:
        raise _damaged(name, "it ends too early")
    pieces = []
    while length:
        piece = source.pread(length, position)
        if not piece:
            raise _damaged(name, "it ends too early")
        pieces.append(piece)
        length -= len(piece)
        position += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _damaged(name: str, reason: str) -> BlobCorruptError:
    return BlobCorruptError(f"{name} is damaged: {reason}", file=name)

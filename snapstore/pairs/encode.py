"""Turn sorted pairs into the bytes of a pair file."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from struct import Struct

from snapstore.pairs.header import PairHeader, encode_header
from snapstore.ports import Pair

MAGIC = b"SNAPAIRS"
DELETED = 0xFFFF_FFFF
MAX_SIZE = 1 << 30
"""Of one key or one value, in bytes: the two together fit into a block."""

U32 = Struct(">I")
SIZES = Struct(">II")
END = Struct(">IQ")

_BLOCK_BYTES = 64 << 10


def encode(header: PairHeader, pairs: Iterable[Pair]) -> Iterator[bytes]:
    """Yield the bytes of a file, in pieces of about 64 KiB; the last piece is its ID.

    Raises ValueError when keys do not ascend, a key or value is too large, or a base deletes.
    """
    digest = hashlib.sha256()
    body = encode_header(header)
    start = b"%b%b%b%b" % (MAGIC, U32.pack(len(body)), body, U32.pack(zlib.crc32(body)))
    digest.update(start)
    yield start
    count = 0
    for payload, number in _payloads(pairs, deletes=header.kind == "delta"):
        block = b"%b%b%b" % (U32.pack(len(payload)), payload, U32.pack(zlib.crc32(payload)))
        digest.update(block)
        yield block
        count += number
    end = END.pack(0, count)
    digest.update(end)
    yield end
    yield digest.digest()


def _payloads(pairs: Iterable[Pair], *, deletes: bool) -> Iterator[tuple[bytes, int]]:
    """Yield the payloads of the blocks, and how many pairs each holds."""
    last: bytes | None = None
    parts: list[bytes] = []
    count = size = 0
    for key, value in pairs:
        if last is not None and key <= last:
            raise ValueError(f"keys do not ascend: {key!r} after {last!r}")
        if max(len(key), len(value or b"")) > MAX_SIZE:
            raise ValueError(f"a key or value is larger than {MAX_SIZE} bytes")
        if value is not None:
            parts += (SIZES.pack(len(key), len(value)), key, value)
            size += len(value)
        elif deletes:
            parts += (SIZES.pack(len(key), DELETED), key)
        else:
            raise ValueError("a base holds no deletions")
        size += SIZES.size + len(key)
        last = key
        count += 1
        if size >= _BLOCK_BYTES:
            yield b"".join(parts), count
            parts, count, size = [], 0, 0
    if parts:
        yield b"".join(parts), count

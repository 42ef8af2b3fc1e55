"""One hash for all that a store holds, whatever the layout of its files."""

import hashlib
from collections.abc import Iterable


def entries_digest(entries: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the SHA-256, in hex, over raw pairs in the order given.

    Each key and each value is preceded by its length (8 bytes, big-endian), so that no two lists
    of pairs have the same input. Give the pairs in key order: two stores are then equal exactly
    where the digests of each of their column families are.
    """
    digest = hashlib.sha256()
    for key, value in entries:
        digest.update(
            b"%b%b%b%b" % (len(key).to_bytes(8, "big"), key, len(value).to_bytes(8, "big"), value)
        )
    return digest.hexdigest()

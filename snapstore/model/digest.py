"""One hash for all that a store holds, whatever the layout of its files."""

import hashlib
from collections.abc import Iterable, Iterator


class EntriesHash:
    """The SHA-256 over raw pairs in the order given, taken while they pass by.

    Each key and each value is preceded by its length (8 bytes, big-endian), so that no two lists
    of pairs have the same input. Give the pairs in key order: two stores are then equal exactly
    where the digests of each of their column families are.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.count = 0

    def passing(self, entries: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs, having added them."""
        for key, value in entries:
            self._digest.update(
                b"%b%b%b%b"
                % (len(key).to_bytes(8, "big"), key, len(value).to_bytes(8, "big"), value)
            )
            self.count += 1
            yield key, value

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def entries_digest(entries: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the hash over all of these pairs, in hex."""
    taken = EntriesHash()
    for _ in taken.passing(entries):
        pass
    return taken.hexdigest()

"""Which files of a folder are the store, and what they say laid over one another."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from snapstore.errors import BlobMissingError, ManifestInvalidError
from snapstore.pairs.decode import PairFile
from snapstore.ports import Pair


def chain_of(files: Iterable[PairFile]) -> tuple[PairFile, ...]:
    """Return the newest file and all that it builds on, the base first; empty without a file.

    Files that are not among them are leftovers. Raises BlobMissingError when one is lacking,
    ManifestInvalidError when two have the same number or a file builds on a newer one.
    """
    by_number = sorted(files, key=lambda file: file.header.number)
    if not by_number:
        return ()
    for older, newer in pairwise(by_number):
        if older.header.number == newer.header.number:
            raise ManifestInvalidError(
                f"{older.header.name} and {newer.header.name} have the same number"
            )
    by_id = {file.id: file for file in by_number}
    chain = [by_number[-1]]
    while (previous := chain[-1].header.previous) is not None:
        found = by_id.get(previous)
        if found is None:
            raise BlobMissingError(
                f"{chain[-1].header.name} builds on a file that is not there",
                file=chain[-1].header.name,
                previous=previous,
            )
        if found.header.number >= chain[-1].header.number:
            raise ManifestInvalidError(
                f"{chain[-1].header.name} builds on {found.header.name}, which is newer"
            )
        chain.append(found)
    return tuple(reversed(chain))


def newest_of_each(layers: Sequence[Iterable[Pair]]) -> Iterator[Pair]:
    """Merge layers of sorted pairs, the oldest first: of each key only its newest pair."""
    if len(layers) == 1:
        yield from layers[0]
        return
    # Ranks make the newest of equal keys come first; pairs of one layer never compare values.
    ranked = [_ranked(layer, -age) for age, layer in enumerate(layers)]
    last: bytes | None = None
    for key, _, value in heapq.merge(*ranked):
        if key != last:
            last = key
            yield key, value


def living(pairs: Iterable[Pair]) -> Iterator[tuple[bytes, bytes]]:
    """Leave the deletions out."""
    for key, value in pairs:
        if value is not None:
            yield key, value


def _ranked(pairs: Iterable[Pair], rank: int) -> Iterator[tuple[bytes, int, bytes | None]]:
    for key, value in pairs:
        yield key, rank, value

"""The offset of a store, from the offsets of its databases."""

from collections.abc import Mapping

import msgspec


class StoreOffset(msgspec.Struct, frozen=True, kw_only=True):
    """What the databases of one store say together about one changelog partition.

    ``applied_offset`` is the least, the only one that every database holds; None when any database
    does not say its own, or when there is none. ``greatest`` is over those that do. ``unknown``
    are the databases that do not say.
    """

    applied_offset: int | None
    greatest: int | None
    unknown: tuple[str, ...]

    @property
    def uneven(self) -> bool:
        """Whether a reader that trusts one database only could miss records of another."""
        return self.greatest is not None and self.applied_offset != self.greatest


def store_offset(by_database: Mapping[str, int | None]) -> StoreOffset:
    """Combine the offsets of all databases of a store.

    Each segment of a window or session store is a RocksDB with a memtable of its own, so each has
    flushed up to another record. One that is left out of the least could lack any record: its
    unknown offset (None, or a negative placeholder) makes the whole store's unknown.
    """
    known = {name: at for name, at in by_database.items() if at is not None and at >= 0}
    unknown = tuple(sorted(by_database.keys() - known.keys()))
    return StoreOffset(
        applied_offset=min(known.values()) if known and not unknown else None,
        greatest=max(known.values(), default=None),
        unknown=unknown,
    )

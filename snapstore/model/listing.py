"""Which snapshots there are, and which of them is the newest."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from snapstore.model.identity import StoreId


class ListedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as its key in the catalog tells it; nothing was read to know it.

    ``offset_sum`` adds up the applied offsets of all ``changelogs`` partitions: it grows with the
    store, so it orders the snapshots of one store, but it is an offset only where there is one
    partition. None for a store without a changelog.
    """

    store: StoreId
    id: str
    captured_at: datetime
    offset_sum: int | None
    changelogs: int

    @property
    def applied_offset(self) -> int | None:
        """Of the only changelog partition; None where the store has none or several."""
        return self.offset_sum if self.changelogs == 1 else None

    @property
    def age_order(self) -> tuple[int, datetime, str]:
        """Sort key from old to new: by what the snapshot holds first, by the clock second.

        Clocks of two hosts differ, and one clock can go back; the changelog does neither.
        """
        return (-1 if self.offset_sum is None else self.offset_sum, self.captured_at, self.id)


def newest_first(listed: Iterable[ListedSnapshot]) -> list[ListedSnapshot]:
    """Sort by application, task and store; within a store the newest comes first."""
    by_age = sorted(listed, key=lambda item: item.age_order, reverse=True)
    return sorted(by_age, key=lambda item: item.store.order)


def newest(listed: Iterable[ListedSnapshot]) -> ListedSnapshot | None:
    """Return the newest snapshot of those given, all of one store."""
    return max(listed, key=lambda item: item.age_order, default=None)

"""Bringing a store forward by the records of its changelog."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from snapstore.model.changelog import ChangelogRecord, PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports.store import StoreView, StoreWriter


class ReplaySubject(msgspec.Struct, frozen=True, kw_only=True):
    """A store that is to be brought forward in one changelog partition.

    ``position`` is how far it has got, None for one that is empty. ``state`` is the partition now.
    """

    location: StoreLocation
    changelog: ChangelogPartition
    position: ChangelogPosition | None
    state: PartitionState


class StoreReplay(Protocol):
    """A store that is being brought forward by the rules of its application."""

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        """Write records, which are in order, and with them that all before ``reached`` was seen.

        What a database has already, by its own offset, is not written to it again. Raises
        NotReplayableError at a record that contradicts what is known of the store.
        """
        ...


class ReplayLayout(Protocol):
    """A layout that knows how its application writes records into its stores.

    Asked for by the method ``open_replay``, which other layouts lack.
    """

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        """Return the changelog that the application would give a store of that name."""
        ...

    def offsets_by_database(
        self, location: StoreLocation, view: StoreView, changelog: ChangelogPartition
    ) -> Mapping[str, int | None]:
        """Return what each database itself has applied, None where it does not say.

        Empty where the store's offset lies beside its files. Raises ExactlyOnceHotError when the
        databases may hold writes that abort.
        """
        ...

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        """Find out by what rules the store is written; nothing is written yet.

        Raises NotReplayableError when they cannot be proved.
        """
        ...

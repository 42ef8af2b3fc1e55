"""Bringing a store forward by the records of its changelog."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from snapstore.model.changelog import ChangelogRecord, PartitionState
from snapstore.model.content import ContentRules
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Deletion, StoreStatus
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports.store import StoreView, StoreWriter


class ReplaySubject(msgspec.Struct, frozen=True, kw_only=True):
    """A store that is to be brought forward in one changelog partition.

    ``position`` is how far it has got, None for one that is empty. ``state`` is the partition now.
    ``committed`` returns the offset that a consumer group reads next in a partition, None where it
    has committed none; without it, nothing is known of groups. ``template`` is another copy of the
    store, whose files show how an empty one is to be written.
    """

    location: StoreLocation
    changelog: ChangelogPartition
    position: ChangelogPosition | None
    state: PartitionState
    committed: Callable[[str, ChangelogPartition], int | None] | None = None
    template: StoreView | None = None


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

    def place(self, store: StoreId, task_dir: Path, generation: str | None) -> StoreLocation:
        """Return where a store would lie of which there are no files.

        ``generation`` is that of the application's other stores, where they tell. Raises
        NotReplayableError when nothing was configured that says what kind of store it is.
        """
        ...

    def require_replayable(self, store: StoreId, store_type: str) -> None:
        """Raise NotReplayableError for a store that cannot be replayed, whatever its files hold."""
        ...

    def offsets_by_database(
        self, location: StoreLocation, view: StoreView, changelog: ChangelogPartition
    ) -> Mapping[str, int | None]:
        """Return what each database itself has applied, None where it does not say.

        Empty where the store's offset lies beside its files.
        """
        ...

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        """Find out by what rules the store is written; nothing is written yet.

        Raises NotReplayableError when they cannot be proved.
        """
        ...


class MarkedLayout(Protocol):
    """A layout whose databases say of themselves whether they were closed.

    Asked for by the method ``status``, which other layouts lack.
    """

    @property
    def guarantee(self) -> str:
        """What is configured of the application's `processing.guarantee`; ``auto``: nothing."""
        ...

    def status(self, view: StoreView) -> StoreStatus | None:
        """Return how the databases mark themselves; None where they have no mark."""
        ...


class DeletingLayout(Protocol):
    """A layout that knows where in the files of its stores a key of the changelog is.

    Asked for by the method ``delete_keys``, which other layouts lack.
    """

    def can_delete(
        self,
        store: StoreId,
        store_type: str,
        state: PartitionState,
        view: StoreView | None = None,
    ) -> bool:
        """Whether a store, whose changelog ``state`` describes, has its keys as the log has them.

        ``view`` shows its files, where there are some.

        Not so where an older value of a key counts still, or nobody but the application knows.
        """
        ...

    def delete_keys(
        self,
        writer: StoreWriter,
        location: StoreLocation,
        position: ChangelogPosition,
        deletions: Sequence[Deletion],
    ) -> None:
        """Delete keys from every database that has not applied their tombstone.

        ``position`` counts for databases that note no offset of their own; offsets stay as they
        are. Raises NotReplayableError when the files are of another kind than was thought.
        """
        ...


class ContentLayout(Protocol):
    """A layout that knows what in its stores is content.

    Asked for by the method ``content_rules``, which other layouts lack: then all of it is.
    """

    def content_rules(
        self, location: StoreLocation, view: StoreView, state: PartitionState
    ) -> ContentRules:
        """Say what a rebuild from the changelog, which ``state`` describes, must have too."""
        ...

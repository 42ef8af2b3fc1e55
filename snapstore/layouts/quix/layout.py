"""The state directory of Quix Streams, as a layout."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from snapstore.errors import ConfigError, NotReplayableError
from snapstore.layouts.locks import held_locks, hold_lock, watching_locks
from snapstore.layouts.quix.discover import discover
from snapstore.layouts.quix.names import (
    LOCK,
    changelog_of,
    partition_dir,
    partition_dirs,
)
from snapstore.layouts.quix.offsets import plan_notes, read_offset, require_offset
from snapstore.layouts.quix.options import QuixOptions
from snapstore.layouts.quix.replay import QuixReplay
from snapstore.model.changelog import PartitionState
from snapstore.model.content import ContentRules
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.quix_records import LOCAL_FAMILIES
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import (
    Discovery,
    Note,
    ReplaySubject,
    StoreReplay,
    StoreView,
    StoreWriter,
)


class QuixLayout:
    """``STATE_DIR/GROUP/STORE/STREAM/PARTITION``, each a RocksDB with a write-ahead log.

    The offset is in the database and written with the data, so it is exact in a running store as
    well. Under exactly-once a store is written only after its transaction was committed.
    """

    name: str = "quix"
    Options: ClassVar[type[QuixOptions]] = QuixOptions

    def __init__(self, options: QuixOptions | None = None) -> None:
        self._options = options or QuixOptions()

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        """Find the stores; the application is the consumer group."""
        return discover(state_dir, application, self.name, self._options)

    def in_use(self, location: StoreLocation) -> bool:
        return bool(self.which_in_use([location]))

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those of which somebody holds RocksDB's lock, the only one there is."""
        held = held_locks(
            (one.path / LOCK for one in locations),
            assume_free=self._options.assume_stopped_without_locks,
        )
        return tuple(one for one in locations if one.path / LOCK in held)

    def watching_locks(self) -> AbstractContextManager[None]:
        return watching_locks()

    def noted_offsets(self, location: StoreLocation) -> bytes | None:  # noqa: ARG002
        """The offset is in the database."""
        return None

    def positions(
        self,
        location: StoreLocation,
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,
        *,
        running: bool,  # noqa: ARG002
    ) -> tuple[ChangelogPosition, ...]:
        """Return what the database notes. Raises UnknownOffsetError, ConfigError."""
        changelog = changelog_of(location.store, self._options)
        if changelog is not None:
            return (ChangelogPosition(changelog, require_offset(location.store, view)),)
        if read_offset(view) is not None:
            raise ConfigError(
                f"{location.store} is configured without a changelog, and notes an offset of one",
                hint="remove the setting, or write the topic's name",
                store=str(location.store),
            )
        return ()

    def remarks(
        self,
        location: StoreLocation,  # noqa: ARG002
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,  # noqa: ARG002
        positions: Sequence[ChangelogPosition],  # noqa: ARG002
    ) -> tuple[str, ...]:
        return ()

    def task_dir(self, target: Path, description: Description) -> Path:
        """Each partition of each store is restored by itself."""
        return partition_dir(target, description.store)

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def notes(
        self,
        task_dir: Path,  # noqa: ARG002
        restored: Sequence[Description],
        views: Sequence[StoreView],
    ) -> tuple[Note, ...]:
        """Plan nothing after a plain restore: the offset has come with the files."""
        return plan_notes(restored, views)

    @contextmanager
    def hold(self, target: Path, description: Description) -> Iterator[None]:
        """Hold RocksDB's lock of every store partition that the consumer group has there.

        A partition that is not there cannot be held: an application that is started while it is
        restored begins an empty one, and opens the restored one at its next start.
        """
        group_dir = partition_dir(target, description.store).parents[2]
        with ExitStack() as held:
            for folder in sorted(partition_dirs(group_dir)):
                held.enter_context(
                    hold_lock(
                        folder / LOCK,
                        target,
                        assume_free=self._options.assume_stopped_without_locks,
                    )
                )
            yield

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        changelog = changelog_of(store, self._options)
        return () if changelog is None else (changelog,)

    def place(self, store: StoreId, task_dir: Path, generation: str | None) -> StoreLocation:  # noqa: ARG002
        """Raise NotReplayableError: nothing but its files tells of a store."""
        raise NotReplayableError(
            f"{store} has no files here",
            hint="take its first snapshot where its application runs",
            store=str(store),
        )

    def require_replayable(self, store: StoreId, store_type: str) -> None:
        """Every store can be tried; what it holds is looked at when it is opened."""

    def offsets_by_database(
        self,
        location: StoreLocation,  # noqa: ARG002
        view: StoreView,
        changelog: ChangelogPartition,  # noqa: ARG002
    ) -> Mapping[str, int | None]:
        (database,) = view.databases
        return {database: read_offset(view)}

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        return QuixReplay(writer, subject)

    def content_rules(
        self,
        location: StoreLocation,  # noqa: ARG002
        view: StoreView,  # noqa: ARG002
        state: PartitionState,  # noqa: ARG002
    ) -> ContentRules:
        """Leave out what is of one host only: it is not in the changelog."""
        return ContentRules(left_out=LOCAL_FAMILIES)

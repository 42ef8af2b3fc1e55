"""The state directory of Kafka Streams, as a layout."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from snapstore.errors import StoreInUseError
from snapstore.layouts.folders import is_folder, list_dir
from snapstore.layouts.kafka_streams.checkpoint import Offsets, parse_checkpoint
from snapstore.layouts.kafka_streams.content import content_rules
from snapstore.layouts.kafka_streams.deletions import can_delete, delete_keys
from snapstore.layouts.kafka_streams.discover import applications_in, discover
from snapstore.layouts.kafka_streams.families import (
    family_positions,
    offsets_by_database,
    read_families,
    store_status,
)
from snapstore.layouts.kafka_streams.mend_notes import mend_notes
from snapstore.layouts.kafka_streams.names import (
    GLOBAL,
    LOCK,
    application_dir,
    conventional_topic,
    task_partition,
)
from snapstore.layouts.kafka_streams.noted import (
    noted_positions,
    offset_file,
    read_offset_file,
)
from snapstore.layouts.kafka_streams.notes import plan_notes
from snapstore.layouts.kafka_streams.options import Guarantee, KafkaStreamsOptions
from snapstore.layouts.kafka_streams.placing import place
from snapstore.layouts.kafka_streams.remarks import remarks
from snapstore.layouts.kafka_streams.replay import open_replay, require_replayable
from snapstore.layouts.kafka_streams.strangers import require_segments
from snapstore.layouts.kafka_streams.target import (
    application_target,
    check_generation,
    task_target,
)
from snapstore.layouts.kafka_streams.task_facts import read_databases, read_tasks
from snapstore.layouts.kafka_streams.task_stores import TaskStores
from snapstore.layouts.kafka_streams.tasks import SEGMENTED
from snapstore.layouts.locks import held_locks, hold_lock, watching_locks
from snapstore.model.changelog import PartitionState
from snapstore.model.content import ContentRules
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Deletion, Description, StoreStatus
from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import (
    Discovery,
    Note,
    ReplaySubject,
    StoreReplay,
    StoreView,
    StoreWriter,
)

ROCKSDB_LOCK = "LOCK"


class KafkaStreamsLayout:
    """``STATE_DIR/APPLICATION/TASK/...`` with offsets in `.checkpoint` or in the databases."""

    name: str = "kafka-streams"
    Options: ClassVar[type[KafkaStreamsOptions]] = KafkaStreamsOptions

    def __init__(self, options: KafkaStreamsOptions | None = None) -> None:
        self._options = options or KafkaStreamsOptions()
        self._task_stores = TaskStores()

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        return discover(state_dir, application, self.name)

    def in_use(self, location: StoreLocation) -> bool:
        return bool(self.which_in_use([location]))

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those that an application has open, with one question for all of them.

        Its own lock is asked for, and that of each RocksDB: an application in another container
        may keep its directory elsewhere.
        """
        locks = {str(one.path): (one, _lock_files(one)) for one in locations}
        asked = [path for _, paths in locks.values() for path in paths]
        held = held_locks(asked, assume_free=self._options.assume_stopped_without_locks)
        return tuple(one for one, paths in locks.values() if not held.isdisjoint(paths))

    def watching_locks(self) -> AbstractContextManager[None]:
        return watching_locks()

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        return read_offset_file(location)

    def positions(
        self, location: StoreLocation, noted: bytes | None, view: StoreView, *, running: bool
    ) -> tuple[ChangelogPosition, ...]:
        """Decide by what the captured databases hold, not by the generation of the location.

        Databases with the family `offsets` speak for themselves; a `.checkpoint` beside them is
        about to be taken over by the application and can only lower their offset.
        """
        if location.store_type == SEGMENTED:
            require_segments(location, view)
        families = read_families(view)
        if families is None:
            task_stores = self._task_stores.of(location)
            return noted_positions(location, noted, task_stores, self._options, running=running)
        positions = family_positions(location.store, families, self._options, running=running)
        if noted is None:
            return positions
        offsets = parse_checkpoint(noted, offset_file(location))
        lowered = (_lowered(position, offsets, location) for position in positions)
        return tuple(position for position in lowered if position.applied_offset >= 0)

    def remarks(
        self,
        location: StoreLocation,
        noted: bytes | None,
        view: StoreView,
        positions: Sequence[ChangelogPosition],
    ) -> tuple[str, ...]:
        return remarks(location, noted, view, read_families(view), positions)

    def read_tasks(self, state_dir: Path, application: str | None) -> tuple[TaskFacts, ...]:
        return read_tasks(state_dir, application, self.name, self._options)

    def read_databases(self, store: StoreFacts, views: Sequence[StoreView]) -> StoreFacts:
        return read_databases(store, views, self._options)

    def application_dirs(self, state_dir: Path, application: str | None) -> Mapping[str, Path]:
        return applications_in(state_dir, application)

    def mend_notes(
        self,
        task: TaskFacts,
        least: Mapping[StoreId, Mapping[ChangelogPartition, int]],
        dropped: Collection[OrphanLine | StoreId],
    ) -> tuple[Note, ...]:
        return mend_notes(task, least, dropped)

    @contextmanager
    def keep_stopped(
        self, application_dir: Path, locations: Sequence[StoreLocation]
    ) -> Iterator[None]:
        """Hold `.lock`, as Kafka Streams does, once no database is open either."""
        lock = application_dir / LOCK
        with hold_lock(
            lock, application_dir.parent, assume_free=self._options.assume_stopped_without_locks
        ):
            asked = [path for one in locations for path in _database_locks(one)]
            if held := held_locks(asked, assume_free=self._options.assume_stopped_without_locks):
                raise StoreInUseError(
                    f"an application has {min(held).parent} open",
                    hint="stop the application first",
                    path=str(min(held).parent),
                )
            yield

    def task_dir(self, target: Path, description: Description) -> Path:
        return task_target(target, description.store)

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:
        return check_generation(target, description, self.name)

    def notes(
        self, task_dir: Path, restored: Sequence[Description], views: Sequence[StoreView]
    ) -> tuple[Note, ...]:
        return plan_notes(task_dir, restored, views, self._options.changelogs)

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        """Return the configured topic, or the conventional one; none for a global store."""
        partition = task_partition(store.task)
        if partition is None or self._options.has_no_changelog(store.store):
            return ()
        topic = self._options.changelogs.get(store.store, conventional_topic(store))
        return (ChangelogPartition(topic, partition),)

    def offsets_by_database(
        self, location: StoreLocation, view: StoreView, changelog: ChangelogPartition
    ) -> Mapping[str, int | None]:
        return offsets_by_database(location.store, read_families(view), changelog)

    @property
    def guarantee(self) -> Guarantee:
        """What is configured of `processing.guarantee`."""
        return self._options.guarantee

    def status(self, view: StoreView) -> StoreStatus | None:
        return store_status(read_families(view))

    def place(self, store: StoreId, task_dir: Path, generation: str | None) -> StoreLocation:
        return place(store, task_dir, generation, self.name, self._options)

    def require_replayable(self, store: StoreId, store_type: str) -> None:
        require_replayable(store, store_type, self._options)

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        return open_replay(writer, subject, self._options)

    def can_delete(
        self,
        store: StoreId,
        store_type: str,
        state: PartitionState,
        view: StoreView | None = None,
    ) -> bool:
        return can_delete(store, store_type, state, view, self._options)

    def delete_keys(
        self,
        writer: StoreWriter,
        location: StoreLocation,
        position: ChangelogPosition,
        deletions: Sequence[Deletion],
    ) -> None:
        delete_keys(writer, location, position, deletions, self._options)

    def content_rules(
        self, location: StoreLocation, view: StoreView, state: PartitionState
    ) -> ContentRules:
        return content_rules(location, view, state, self._options)

    @contextmanager
    def hold(self, target: Path, description: Description) -> Iterator[None]:
        """Hold `.lock` of the application, as Kafka Streams does; its folder is made if missing.

        The application then fails at its start with "Unable to initialize state" (StateDirectory).
        """
        folder = application_target(target, description.store)
        if not os.path.lexists(folder):
            with suppress(FileExistsError):
                folder.mkdir(mode=0o750, parents=True)
        with hold_lock(
            folder / LOCK, target, assume_free=self._options.assume_stopped_without_locks
        ):
            yield


def _lock_files(location: StoreLocation) -> list[Path]:
    return [application_dir(location) / LOCK, *_database_locks(location)]


def _database_locks(location: StoreLocation) -> list[Path]:
    folder = location.path
    inner = (folder / each.name for each in list_dir(folder) if is_folder(each))
    return [folder / ROCKSDB_LOCK, *(segment / ROCKSDB_LOCK for segment in inner)]


def _lowered(
    position: ChangelogPosition, offsets: Offsets, location: StoreLocation
) -> ChangelogPosition:
    noted = offsets.get(position.changelog)
    if noted is None:
        return position
    applied = noted - 1 if location.store.task == GLOBAL else noted
    return ChangelogPosition(position.changelog, min(applied, position.applied_offset))

"""Read the tasks of an application as they are, without judging: for `fsck`."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from snapstore.errors import CaptureError, SourceDamagedError
from snapstore.layouts.folders import list_dir
from snapstore.layouts.kafka_streams.checkpoint import (
    Offsets,
    lines_passed_over,
    parse_checkpoint,
)
from snapstore.layouts.kafka_streams.discover import Sight, applications_in, unread_in
from snapstore.layouts.kafka_streams.family import FAMILY, read_family
from snapstore.layouts.kafka_streams.names import (
    CHECKPOINT,
    GLOBAL,
    conventional_store,
    conventional_topic,
    own_checkpoint,
    task_partition,
)
from snapstore.layouts.kafka_streams.next_offset import REMARK, notes_next_offset
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions
from snapstore.layouts.kafka_streams.strangers import exchanged, find_strangers, passed_over
from snapstore.layouts.kafka_streams.tasks import (
    SEGMENTED,
    FoundStore,
    located,
    read_task,
)
from snapstore.layouts.kafka_streams.topics import Attribution, attribute
from snapstore.model.identity import ChangelogPartition, StoreId, natural_order
from snapstore.model.regular_file import read_source
from snapstore.model.segment_names import segment_start
from snapstore.model.state_facts import (
    Damage,
    DatabaseFacts,
    NotedOffsets,
    OrphanLine,
    StoreFacts,
    TaskFacts,
)
from snapstore.model.unread import Unread
from snapstore.ports import StoreView

T = TypeVar("T")


def read_tasks(
    state_dir: Path, application: str | None, layout: str, options: KafkaStreamsOptions
) -> tuple[TaskFacts, ...]:
    """Return every task with its stores and the lines of its offset files.

    What the databases themselves note is left open. A `.checkpoint` is read before anything else of
    its task. What cannot be read stops nothing else. Raises StoreNotFoundError, or CaptureError
    when it is the directory or the application that cannot.
    """
    found = [_unread(each) for each in unread_in(state_dir, application)]
    for name, directory in applications_in(state_dir, application).items():
        sight = Sight({name: directory}, ())
        readers = []
        for _, task, path in sight.tasks:
            try:
                readers.append(_TaskReader(name, task, path, layout, options))
            except CaptureError as error:
                sight.miss(StoreId(name, task, ""), path, error)
        found += [_unread(each) for each in sight.unread]
        elsewhere = {
            reader.task: frozenset(
                store
                for other in readers
                if other.task != reader.task and other.partition == reader.partition
                for store in other.content.names()
            )
            for reader in readers
        }
        read = [reader.facts(elsewhere[reader.task]) for reader in readers]
        if read:
            # What lies beside the tasks is told once, with the first of them.
            leftovers = (*sight.notes, *read[0].leftovers)
            read[0] = msgspec.structs.replace(read[0], leftovers=leftovers)
        found += read
    return tuple(sorted(found, key=lambda task: (task.application, natural_order(task.task))))


def _unread(whole: Unread) -> TaskFacts:
    """Return a task, or a whole application, of which nothing is known."""
    return TaskFacts(
        application=whole.store.application,
        task=whole.store.task,
        task_dir=whole.path,
        unread=(whole,),
    )


class _TaskReader:
    """One task directory. Its offset file is read first, so it is no newer than the rest."""

    def __init__(
        self,
        application: str,
        task: str,
        task_dir: Path,
        layout: str,
        options: KafkaStreamsOptions,
    ) -> None:
        self.task = task
        self.partition = task_partition(task)
        self._application = application
        self._task_dir = task_dir
        self._layout = layout
        self._options = options
        self._fault: str | None = None
        self._unreadable: list[str] = []
        self._missed: list[Unread] = []
        self._passed_over: frozenset[ChangelogPartition] = frozenset()
        lines = self._read(CHECKPOINT)
        self._has_file = lines is not None or self._fault is not None
        self._lines = lines or {}
        self.content = read_task(task_dir, application, task, heed_checkpoint=self._fault is None)

    def facts(self, elsewhere: frozenset[str]) -> TaskFacts:
        """Return what is here; ``elsewhere`` names the stores of other tasks of this partition."""
        ids = [StoreId(self._application, self.task, name) for name in self.content.names()]
        named = {*self._lines, *self._passed_over}
        matched = attribute(ids, named, self._options.changelogs)
        stores = tuple(
            store
            for found in self.content.stores
            for store in self._if_readable(found.name, partial(self._store, found, matched))
        )
        foreign = list(matched.foreign)
        orphans = []
        for changelog, offset in sorted(self._lines.items()):
            name = self._name_without_files(changelog, matched, stores)
            if name is None or changelog in matched.foreign:
                continue
            if name in elsewhere:
                foreign.append(changelog)
            else:
                orphans.append(self._orphan(name, changelog, offset, CHECKPOINT))
        orphans += self._own_files_without_stores()
        unread = (*self.content.unread, *self._missed)
        if any(each.whole for each in unread):
            # The store of such a line may be among those that cannot be seen.
            orphans.clear()
        return TaskFacts(
            application=self._application,
            task=self.task,
            task_dir=self._task_dir,
            has_offset_file=self._has_file,
            offset_file_fault=self._fault,
            unreadable_files=tuple(self._unreadable),
            stores=stores,
            orphans=tuple(orphans),
            foreign_lines=tuple(foreign),
            leftovers=self._leftovers(),
            unread=unread,
        )

    def _if_readable(self, name: str, read: Callable[[], T]) -> Iterator[T]:
        """Yield what is read of a store, if it can be; a damaged file is told elsewhere."""
        try:
            yield read()
        except CaptureError as error:
            id_ = StoreId(self._application, self.task, name)
            self._missed.append(Unread(store=id_, path=self._task_dir / name, error=error))

    def _read(self, name: str) -> Offsets | None:
        """Return the applied offsets in a file; None when it is not there or cannot be read.

        What it names and Kafka Streams passes over is kept apart.
        """
        path = self._task_dir / name
        try:
            content = read_source(path)
            offsets = parse_checkpoint(content, path)
            skipped = {line.changelog for line in lines_passed_over(content, path)}
        except (FileNotFoundError, NotADirectoryError):
            return None
        except SourceDamagedError as error:
            self._fault = self._fault or error.message
            self._unreadable.append(name)
            return None
        self._passed_over |= {one for one in skipped if one is not None} - offsets.keys()
        return applied(offsets, self.task)

    def _store(self, found: FoundStore, matched: Attribution) -> StoreFacts:
        id_ = StoreId(self._application, self.task, found.name)
        lines: NotedOffsets
        candidates: tuple[str, ...] = ()
        if own_checkpoint(found.name) in found.side_files:
            lines = self._read(own_checkpoint(found.name)) or {}
            topics = {changelog.topic for changelog in lines}
            foreign = tuple(one for one in sorted(lines) if not self._is_read(one))
            lines = {one: at for one, at in lines.items() if self._is_read(one)}
        else:
            topic = matched.topics.get(found.name)
            topics = {topic} if topic is not None else set()
            lines = {
                one: at
                for one, at in self._lines.items()
                if one.topic == topic and one not in matched.foreign
            }
            ours = any(one not in matched.foreign for one in self._lines)
            foreign = () if topics or ours else matched.foreign
            if topic is None and not self._options.has_no_changelog(found.name):
                candidates = matched.unclaimed
        return StoreFacts(
            location=located(found, self._task_dir, id_, self._layout),
            databases=tuple(DatabaseFacts(name=name) for name in found.databases),
            changelogs=tuple(sorted({*lines, *self._passed_over_of(topics)})),
            candidates=candidates,
            presumed=self._presumed(id_),
            lines=lines,
            foreign=foreign,
            damage=self._damage(found),
        )

    def _passed_over_of(self, topics: set[str]) -> set[ChangelogPartition]:
        """Return partitions of a store that a line names without an offset that counts."""
        return {one for one in self._passed_over if one.topic in topics and self._is_read(one)}

    def _is_read(self, changelog: ChangelogPartition) -> bool:
        return self.partition in (None, changelog.partition)

    def _presumed(self, id_: StoreId) -> ChangelogPartition | None:
        """Name the changelog that such a store would have if nothing said otherwise."""
        if self.partition is None or self._options.has_no_changelog(id_.store):
            return None
        topic = self._options.changelogs.get(id_.store, conventional_topic(id_))
        return ChangelogPartition(topic, self.partition)

    def _damage(self, found: FoundStore) -> tuple[Damage, ...]:
        """Return what can be seen of damage without opening anything."""
        if (self._task_dir / found.root).is_file():
            return (Damage(file=found.root, reason="a plain file is in the place of its folder"),)
        if found.store_type != SEGMENTED:
            return ()
        return tuple(find_strangers(self._task_dir, found.root, found.name))

    def _name_without_files(
        self, changelog: ChangelogPartition, matched: Attribution, stores: Sequence[StoreFacts]
    ) -> str | None:
        """Return the store that a line is of, if there is none that it could be of here."""
        if changelog.topic in matched.topics.values():
            return None
        conventional = conventional_store(changelog.topic, self._application, self.task)
        if conventional is not None:
            return conventional
        left = [store for store in stores if changelog.topic in store.candidates]
        return None if left else changelog.topic

    def _own_files_without_stores(self) -> list[OrphanLine]:
        prefix = own_checkpoint("")
        orphans = []
        for entry in sorted(list_dir(self._task_dir), key=lambda entry: entry.name):
            name = entry.name.removeprefix(prefix)
            if entry.name == name or entry.name.endswith(".tmp") or self.content.find(name):
                continue
            orphans += [
                self._orphan(name, changelog, offset, entry.name)
                for lines in self._if_readable(name, partial(self._read, entry.name))
                for changelog, offset in sorted((lines or {}).items())
                if self._is_read(changelog)
            ]
        return orphans

    def _orphan(
        self, name: str, changelog: ChangelogPartition, offset: int | None, file: str
    ) -> OrphanLine:
        id_ = StoreId(self._application, self.task, name)
        return OrphanLine(store=id_, changelog=changelog, offset=offset, file=file)

    def _leftovers(self) -> tuple[str, ...]:
        names = sorted(entry.name for entry in list_dir(self._task_dir))
        told = [
            f"{self._task_dir / name}: a half-written offset file, which nobody reads"
            for name in names
            if name.startswith(CHECKPOINT) and name.endswith(".tmp")
        ]
        told += [
            sentence
            for store in self.content.stores
            if store.store_type == SEGMENTED
            for sentence in passed_over(self._task_dir, store.root, store.name)
        ]
        if self._lines and notes_next_offset(self._task_dir):
            told.append(f"{self._task_dir / CHECKPOINT} {REMARK}")
        return (*told, *self.content.notes)


def applied(offsets: Offsets, task: str) -> Offsets:
    """Turn the numbers of an offset file into applied offsets: global stores note the next one.

    A 0 of theirs means the same as none: everything is read.
    """
    if task != GLOBAL:
        return offsets
    return {
        changelog: None if at is None else at - 1 for changelog, at in offsets.items() if at != 0
    }


def read_databases(
    store: StoreFacts, views: Sequence[StoreView], options: KafkaStreamsOptions
) -> StoreFacts:
    """Add what the databases note; partitions that the task does not read are set apart.

    Of several topics the configured one counts, or the one that the lines name, or the
    conventional one: another may have stayed from a former name of the application.
    """
    task = store.store.task
    databases = {each.name: each for each in store.databases}
    for view in views:
        databases |= {
            name: _read_database(view, name, task)
            for name in view.databases
            if _start(store, name) is not None
        }
    partition = task_partition(task)
    named = {changelog for each in databases.values() for changelog in each.offsets}
    here = {one for one in named if partition in (None, one.partition)}
    topic = _topic(store, {one.topic for one in here}, options)
    candidates = store.candidates
    if topic is None and here:
        candidates = tuple(sorted({one.topic for one in here}))
    changelogs = {*store.changelogs, *(one for one in here if one.topic == topic)}
    ordered = sorted(
        databases.values(),
        key=lambda each: (_start(store, each.name) or 0, each.name),
        reverse=True,
    )
    wrong = exchanged(store.location, views) if store.location.store_type == SEGMENTED else None
    return msgspec.structs.replace(
        store,
        damage=store.damage if wrong is None else (*store.damage, wrong),
        databases=tuple(ordered),
        changelogs=tuple(sorted(changelogs)),
        candidates=() if changelogs else candidates,
        foreign=store.foreign if here else (*store.foreign, *sorted(named - here)),
    )


def _read_database(view: StoreView, name: str, task: str) -> DatabaseFacts:
    if FAMILY not in view.families(name):
        return DatabaseFacts(name=name)
    content = read_family(view.entries(name, FAMILY), name)
    return DatabaseFacts(
        name=name,
        keeps_offsets=True,
        offsets=applied(dict(content.offsets), task),
        status=content.status,
    )


def _topic(store: StoreFacts, topics: set[str], options: KafkaStreamsOptions) -> str | None:
    configured = options.changelogs.get(store.store.store)
    if configured is not None:
        return configured
    wanted = {changelog.topic for changelog in store.changelogs} or {
        conventional_topic(store.store)
    }
    if found := wanted & topics:
        return min(found)
    return min(topics) if len(topics) == 1 else None


def _start(store: StoreFacts, database: str) -> int | None:
    """Return when a database begins: 0 for one that is no segment, None for no database of it."""
    if store.location.store_type != SEGMENTED:
        return 0
    return segment_start(store.store.store, database.rpartition("/")[2])

"""Plan how offsets are noted so that the application reads enough of its changelogs again."""

from collections.abc import Collection, Mapping
from pathlib import Path

from snapstore.layouts.kafka_streams.checkpoint import parse_checkpoint, render_checkpoint
from snapstore.layouts.kafka_streams.family import FAMILY, offset_entry
from snapstore.layouts.kafka_streams.names import CHECKPOINT, GLOBAL
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts
from snapstore.ports import FamilyNote, FileNote, Note


def mend_notes(
    task: TaskFacts,
    least: Mapping[StoreId, Mapping[ChangelogPartition, int]],
    dropped: Collection[OrphanLine | StoreId],
) -> tuple[Note, ...]:
    """Return the notes for one task directory.

    Each database of a store gets the store's least offset, unless it has it already: only what is
    flushed into the database outlives a second crash (see ``plan_notes``). The status of a database
    is not touched. A line about it in `.checkpoint` goes, since it would be taken over instead.
    """
    stores = {store.store: store for store in task.stores}
    notes: list[Note] = []
    for id_, offsets in least.items():
        notes += _family_notes(stores[id_], offsets)
    gone = {changelog for id_ in least for changelog in _lines(stores[id_])}
    # Any of these lines may be of a store that goes: none may stay without its files.
    topics = {
        topic
        for each in dropped
        if isinstance(each, StoreId) and each in stores
        for topic in stores[each].candidates
    }
    for each in dropped:
        if isinstance(each, OrphanLine):
            if each.file == CHECKPOINT:
                gone.add(each.changelog)
            else:
                notes.append(FileNote(name=each.file, content=None))
        elif each in stores:
            gone.update(_lines(stores[each]), stores[each].foreign)
    return (*_task_file(task.task_dir, gone, topics), *notes)


def _lines(store: StoreFacts) -> list[ChangelogPartition]:
    """Return the lines of `.checkpoint` that are of a store; not those of a file of its own."""
    if any(name.startswith(CHECKPOINT) for name in store.location.side_files):
        return []
    return list(store.lines)


def _family_notes(store: StoreFacts, offsets: Mapping[ChangelogPartition, int]) -> list[FamilyNote]:
    ahead = 1 if store.store.task == GLOBAL else 0
    notes = []
    for database in store.databases:
        entries = dict(
            offset_entry(changelog, applied + ahead)
            for changelog, applied in offsets.items()
            if database.offsets.get(changelog) != applied
        )
        if entries:
            notes.append(FamilyNote(database=database.name, family=FAMILY, entries=entries))
    return notes


def _task_file(
    task_dir: Path, gone: Collection[ChangelogPartition], topics: Collection[str]
) -> list[FileNote]:
    path = task_dir / CHECKPOINT
    if not (gone or topics) or not path.exists():
        return []
    offsets = parse_checkpoint(read_source(path), path)
    kept = {
        changelog: at
        for changelog, at in offsets.items()
        if changelog not in gone and changelog.topic not in topics
    }
    if len(kept) == len(offsets):
        return []
    return [FileNote(name=CHECKPOINT, content=render_checkpoint(kept) if kept else None)]

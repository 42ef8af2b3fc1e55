"""Plan how the offsets of restored stores are noted in a staged task directory."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from snapstore.errors import CaptureError, RefusedError
from snapstore.layouts.kafka_streams.checkpoint import (
    Offsets,
    parse_checkpoint,
    render_checkpoint,
)
from snapstore.layouts.kafka_streams.family import FAMILY, offset_entry, status_entry
from snapstore.layouts.kafka_streams.names import (
    CHECKPOINT,
    FROM_4_3,
    GLOBAL,
    own_checkpoint,
)
from snapstore.layouts.kafka_streams.tasks import CUSTOM, TaskContent, read_task
from snapstore.layouts.kafka_streams.topics import attribute
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.snapshot import Description
from snapstore.ports import FamilyNote, FileNote, Note, StoreView


def plan_notes(
    task_dir: Path,
    restored: Sequence[Description],
    views: Sequence[StoreView],
    configured: Mapping[str, str],
) -> tuple[Note, ...]:
    """Return the notes for one task directory; all of ``restored`` are of that task.

    Where the databases keep the offset, each gets the store's own, the least of all, if it does
    not have it already: it is flushed there, while a `.checkpoint` would be taken over into memory
    only and then removed (LegacyCheckpointingStateStore). To 4.2 the offset goes into `.checkpoint`
    beside those of the other stores whose files are there; a line for files that are not there
    would make the application skip records that it lacks. The status of a database is not touched,
    but for a global store: under exactly-once its application never starts on one that is marked as
    open (KAFKA-21034), and what it holds up to its offset is right whoever wrote it.
    """
    if not restored:
        return ()
    first = restored[0].store
    content = read_task(task_dir, first.application, first.task)
    lines = _kept_lines(task_dir, content, restored, configured)
    notes: list[Note] = []
    for description, view in zip(restored, views, strict=True):
        offsets = _offsets(description)
        if _has_own_file(description, content):
            notes += _own_file(task_dir, description, offsets)
        elif _keeps_offsets(description, view):
            notes += _family_notes(view, offsets, close=description.store.task == GLOBAL)
        else:
            lines |= offsets
    return (*_task_file(task_dir, lines), *notes)


def _offsets(description: Description) -> dict[ChangelogPartition, int]:
    """Return the numbers to write: a global store notes the offset to read next."""
    return {
        one.position.changelog: one.position.resume_offset
        if description.store.task == GLOBAL
        else one.position.applied_offset
        for one in description.positions
    }


def _has_own_file(description: Description, content: TaskContent) -> bool:
    found = content.find(description.store.store)
    if found is not None and own_checkpoint(found.name) in found.side_files:
        return True
    return description.store_type == CUSTOM and description.generation == FROM_4_3


def _keeps_offsets(description: Description, view: StoreView) -> bool:
    if description.generation == FROM_4_3:
        return True
    return any(FAMILY in view.families(database) for database in view.databases)


def _family_notes(
    view: StoreView, offsets: Mapping[ChangelogPartition, int], *, close: bool
) -> list[Note]:
    """Note the offsets in every database, and with ``close`` that those marked open are closed."""
    noted = dict(offset_entry(changelog, offset) for changelog, offset in offsets.items())
    open_, closed = status_entry("open"), status_entry("closed")
    notes: list[Note] = []
    for database in view.databases:
        there = view.entries(database, FAMILY) if FAMILY in view.families(database) else {}
        wanted = noted | {closed[0]: closed[1]} if close and open_ in there.items() else noted
        entries = {key: value for key, value in wanted.items() if there.get(key) != value}
        if entries:
            notes.append(FamilyNote(database=database, family=FAMILY, entries=entries))
    return notes


def _own_file(
    task_dir: Path, description: Description, offsets: Mapping[ChangelogPartition, int]
) -> list[Note]:
    name = own_checkpoint(description.store.store)
    content = render_checkpoint(offsets) if offsets else None
    return _file_note(task_dir, name, content)


def _task_file(task_dir: Path, lines: Offsets) -> list[Note]:
    return _file_note(task_dir, CHECKPOINT, render_checkpoint(lines) if lines else None)


def _file_note(task_dir: Path, name: str, content: bytes | None) -> list[Note]:
    path = task_dir / name
    if not os.path.lexists(path):
        return [] if content is None else [FileNote(name=name, content=content)]
    try:
        as_it_is = read_source(path) == content
    except CaptureError:
        as_it_is = False
    return [] if as_it_is else [FileNote(name=name, content=content)]


def _kept_lines(
    task_dir: Path,
    content: TaskContent,
    restored: Sequence[Description],
    configured: Mapping[str, str],
) -> Offsets:
    """Return the lines that stay: of stores that are there and are not being restored."""
    path = task_dir / CHECKPOINT
    if not path.exists():
        return {}
    first = restored[0].store
    replaced = {description.store.store for description in restored}
    try:
        offsets = parse_checkpoint(read_source(path), path)
    except CaptureError as error:
        others = sorted({*content.names()} - replaced)
        if not others:
            # Whatever it is, all that it could speak of is being replaced.
            return {}
        raise RefusedError(
            f"{CHECKPOINT} of task {first.task} cannot be read, and {', '.join(others)} may have an"
            " offset in it",
            hint="restore the whole task, or set the file aside with fsck --repair first",
            path=str(path),
        ) from error
    known = {
        description.store.store: description.positions[0].position.changelog.topic
        for description in restored
        if description.positions
    }
    names = sorted({*content.names(), *replaced})
    ids = [StoreId(first.application, first.task, name) for name in names]
    matched = attribute(ids, offsets, {**configured, **known})
    kept = {topic for name, topic in matched.topics.items() if name not in replaced}
    return {
        changelog: offset
        for changelog, offset in offsets.items()
        if changelog.topic in kept and changelog not in matched.foreign
    }

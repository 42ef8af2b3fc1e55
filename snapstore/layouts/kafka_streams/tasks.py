"""The stores in one task directory.

Key-value, versioned and outer-join stores are one RocksDB each below `rocksdb/`; window, session
and join stores are a folder with one RocksDB a segment. A custom store is known by its own offset
file or by its line in `.checkpoint`. Stores in memory leave nothing.
"""

import os
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path

import msgspec

from snapstore.errors import CaptureError
from snapstore.layouts.folders import is_folder, list_dir, unreadable
from snapstore.layouts.kafka_streams.checkpoint import (
    PassedOver,
    lines_passed_over,
    on_passed_over,
    parse_checkpoint,
)
from snapstore.layouts.kafka_streams.generation import generation_of
from snapstore.layouts.kafka_streams.names import (
    BEFORE_4_3,
    CHECKPOINT,
    FROM_4_3,
    LOST_AND_FOUND,
    POSITION_SUFFIX,
    ROCKSDB,
    conventional_topic,
    own_checkpoint,
)
from snapstore.model.identity import StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.segment_names import segment_start
from snapstore.model.store import StoreLocation
from snapstore.model.unread import Unread

KEY_VALUE = "key-value"
SEGMENTED = "segmented"
CUSTOM = "custom"
IN_MEMORY = "in-memory"

_PLAIN_FILE = "a plain file, and no store is kept in one: left out"
_EMPTY = "an empty folder: nothing to take"


class FoundStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store by its files; ``databases`` are relative to the task directory, the newest first."""

    name: str
    root: str
    store_type: str
    databases: tuple[str, ...] = ()
    side_files: tuple[str, ...] = ()


class TaskContent(msgspec.Struct, frozen=True, kw_only=True):
    stores: tuple[FoundStore, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the stores that are there, also those that cannot be read."""
        unread = (each.store.store for each in self.unread if not each.whole)
        return (*(store.name for store in self.stores), *unread)

    def find(self, name: str) -> FoundStore | None:
        return next((store for store in self.stores if store.name == name), None)


def read_task(
    task_dir: Path, application: str, task: str, *, heed_checkpoint: bool = True
) -> TaskContent:
    """List the stores of a task by reading names; only `.checkpoint` is opened.

    A task that vanishes meanwhile holds nothing. A plain file in the place of a store's folder is
    a store that cannot be opened. A store that cannot be read stops no other. Raises CaptureError
    when the task itself cannot.
    """
    entries = {entry.name: entry for entry in list_dir(task_dir)}
    files = {name for name, entry in entries.items() if not is_folder(entry)}
    stores: list[FoundStore] = []
    notes: list[str] = []
    unread: list[Unread] = []

    def add(name: str, root: str, look: Callable[[], FoundStore | str]) -> None:
        try:
            found = look()
        except CaptureError as error:
            id_ = StoreId(application, task, name)
            unread.append(Unread(store=id_, path=task_dir / root, error=error))
            return
        if isinstance(found, str):
            notes.append(f"{task_dir / root}: {found}")
        else:
            stores.append(found)

    known = files if heed_checkpoint else files - {CHECKPOINT}
    topics: Callable[[], Collection[str]] = cache(partial(_topics, task_dir / CHECKPOINT))
    if ROCKSDB in entries and ROCKSDB not in files:
        try:
            inner = [each for each in list_dir(task_dir / ROCKSDB) if _may_be_store(each)]
        except CaptureError as error:
            id_ = StoreId(application, task, "")
            unread.append(Unread(store=id_, path=task_dir / ROCKSDB, error=error))
            inner = []
        for entry in inner:
            root = f"{ROCKSDB}/{entry.name}"
            add(entry.name, root, partial(_read_database, task_dir, entry.name, root, files))
    for name in sorted(entries.keys() - files - {ROCKSDB, LOST_AND_FOUND}):
        id_ = StoreId(application, task, name)
        add(name, name, partial(_read_folder, task_dir, id_, known, topics))
    noted = _noted(task_dir) if CHECKPOINT in known else _NOTHING
    notes += (on_passed_over(line, task_dir / CHECKPOINT) for line in noted.passed_over)
    for name in sorted(files):
        if name.startswith(".") or name.endswith(POSITION_SUFFIX) or not entries[name].is_file():
            continue
        if name == ROCKSDB or conventional_topic(StoreId(application, task, name)) in noted.topics:
            stores.append(_store(name, name, SEGMENTED, files))
        else:
            notes.append(f"{task_dir / name}: {_PLAIN_FILE}")
    return TaskContent(
        stores=tuple(sorted(stores, key=lambda s: s.name)),
        notes=tuple(notes),
        unread=tuple(unread),
    )


def located(store: FoundStore, task_dir: Path, id_: StoreId, layout: str) -> StoreLocation:
    """Return the store as a location, with the generation that its files show.

    Raises CaptureError when they cannot be read.
    """
    if store.store_type == CUSTOM:
        own = own_checkpoint(store.name) in store.side_files
        generation = FROM_4_3 if own else BEFORE_4_3
    else:
        try:
            generation = generation_of(task_dir / database for database in store.databases)
        except OSError as error:
            raise unreadable(Path(error.filename or task_dir / store.root), error) from error
    return StoreLocation(
        store=id_,
        layout=layout,
        backend="files" if store.store_type == CUSTOM else "rocksdb",
        store_type=store.store_type,
        generation=generation,
        task_dir=task_dir,
        root=store.root,
        side_files=store.side_files,
    )


def _may_be_store(entry: os.DirEntry[str]) -> bool:
    """A link that leads nowhere is a store all the same: the application would follow it.

    So is a plain file: it would fail at it.
    """
    return is_folder(entry) or entry.is_symlink() or not entry.name.startswith(".")


def _read_database(task_dir: Path, name: str, root: str, files: set[str]) -> FoundStore | str:
    if not any(list_dir(task_dir / root)) and (task_dir / root).is_dir():
        return _EMPTY
    if (task_dir / root).is_file():
        return _store(name, root, KEY_VALUE, files)
    return _store(name, root, KEY_VALUE, files, databases=(root,))


def _read_folder(
    task_dir: Path, id_: StoreId, files: set[str], topics: Callable[[], Collection[str]]
) -> FoundStore | str:
    """Return the store in a folder of the task, or the reason why there is none."""
    name = id_.store
    inner = [entry.name for entry in list_dir(task_dir / name)]
    starts = {one: start for one in inner if (start := segment_start(name, one)) is not None}
    if starts:
        newest_first = sorted(starts, key=lambda one: (starts[one], one), reverse=True)
        databases = tuple(f"{name}/{segment}" for segment in newest_first)
        return _store(name, name, SEGMENTED, files, databases=databases)
    if not inner:
        return _EMPTY
    if own_checkpoint(name) in files or (
        CHECKPOINT in files and conventional_topic(id_) in topics()
    ):
        return _store(name, name, CUSTOM, files)
    return "no store that this layout knows: left out"


class _Noted(msgspec.Struct, frozen=True):
    """The topics of which `.checkpoint` has a line, and the lines that nobody heeds."""

    topics: frozenset[str]
    passed_over: tuple[PassedOver, ...]


_NOTHING = _Noted(frozenset(), ())


def _noted(task_dir: Path) -> _Noted:
    """Read `.checkpoint`; what is wrong with it is told with the stores."""
    path = task_dir / CHECKPOINT
    try:
        return _Noted(frozenset(_topics(path)), lines_passed_over(read_source(path), path))
    except (FileNotFoundError, NotADirectoryError, CaptureError):
        return _NOTHING


def _topics(path: Path) -> set[str]:
    """Return the topics that `.checkpoint` has a line of, heeded or not; none without the file."""
    try:
        content = read_source(path)
    except (FileNotFoundError, NotADirectoryError):
        return set()
    skipped = (line.changelog for line in lines_passed_over(content, path))
    named = [*parse_checkpoint(content, path), *(one for one in skipped if one is not None)]
    return {changelog.topic for changelog in named}


def _store(
    name: str, root: str, store_type: str, files: set[str], databases: tuple[str, ...] = ()
) -> FoundStore:
    beside = (own_checkpoint(name), f"{name}{POSITION_SUFFIX}")
    return FoundStore(
        name=name,
        root=root,
        store_type=store_type,
        databases=databases,
        side_files=tuple(file for file in beside if file in files),
    )

"""The stores in one task directory.

Key-value, versioned and outer-join stores are one RocksDB each below `rocksdb/`; window, session
and join stores are a folder with one RocksDB a segment. A custom store is known by its own offset
file or by its line in `.checkpoint`. Stores in memory leave nothing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from snapstore.errors import CaptureError
from snapstore.layouts.kafka_streams.checkpoint import parse_checkpoint
from snapstore.layouts.kafka_streams.generation import generation_of
from snapstore.layouts.kafka_streams.names import (
    BEFORE_4_3,
    CHECKPOINT,
    FROM_4_3,
    LOST_AND_FOUND,
    POSITION_SUFFIX,
    ROCKSDB,
    conventional_topic,
    is_segment,
    own_checkpoint,
)
from snapstore.model.identity import StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.store import StoreLocation

KEY_VALUE = "key-value"
SEGMENTED = "segmented"
CUSTOM = "custom"
IN_MEMORY = "in-memory"

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

    def names(self) -> tuple[str, ...]:
        return tuple(store.name for store in self.stores)

    def find(self, name: str) -> FoundStore | None:
        return next((store for store in self.stores if store.name == name), None)


def read_task(
    task_dir: Path, application: str, task: str, *, heed_checkpoint: bool = True
) -> TaskContent:
    """List the stores of a task by reading names; only `.checkpoint` is opened, if a folder's
    meaning hangs on it. A task that vanishes meanwhile holds nothing."""
    entries = {entry.name: entry for entry in list_dir(task_dir)}
    files = {name for name, entry in entries.items() if not is_folder(entry)}
    stores: list[FoundStore] = []
    notes: list[str] = []
    if ROCKSDB in entries and ROCKSDB not in files:
        for entry in list_dir(task_dir / ROCKSDB):
            root = f"{ROCKSDB}/{entry.name}"
            if is_folder(entry) and not any(list_dir(task_dir / root)):
                notes.append(f"{task_dir / root}: {_EMPTY}")
            elif is_folder(entry) or entry.is_symlink():
                stores.append(_store(entry.name, root, KEY_VALUE, files, databases=(root,)))
    for name in sorted(entries.keys() - files - {ROCKSDB, LOST_AND_FOUND}):
        known = files if heed_checkpoint else files - {CHECKPOINT}
        found = _read_folder(task_dir, StoreId(application, task, name), known)
        if isinstance(found, str):
            notes.append(f"{task_dir / name}: {found}")
        else:
            stores.append(found)
    return TaskContent(stores=tuple(sorted(stores, key=lambda s: s.name)), notes=tuple(notes))


def located(store: FoundStore, task_dir: Path, id_: StoreId, layout: str) -> StoreLocation:
    """Return the store as a location, with the generation that its files show."""
    if store.store_type == CUSTOM:
        own = own_checkpoint(store.name) in store.side_files
        generation = FROM_4_3 if own else BEFORE_4_3
    else:
        generation = generation_of(task_dir / database for database in store.databases)
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


def list_dir(path: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder; nothing when it is not there.

    Raises CaptureError when it may not be read: that is not the same as being empty.
    """
    try:
        with os.scandir(path) as entries:
            yield from entries
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as exc:
        raise unreadable(path) from exc


def unreadable(path: Path) -> CaptureError:
    return CaptureError(
        f"{path} may not be read",
        hint="run snapstore as the user of the application, or as a member of its group",
        path=str(path),
    )


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a folder or a link to one; False for a link that leads nowhere."""
    try:
        return entry.is_dir()
    except PermissionError as exc:
        raise unreadable(Path(entry.path)) from exc
    except OSError:
        return False


def _read_folder(task_dir: Path, id_: StoreId, files: set[str]) -> FoundStore | str:
    """Return the store in a folder of the task, or the reason why there is none."""
    name = id_.store
    inner = [entry.name for entry in list_dir(task_dir / name)]
    segments = sorted((one for one in inner if is_segment(name, one)), key=_start, reverse=True)
    if segments:
        databases = tuple(f"{name}/{segment}" for segment in segments)
        return _store(name, name, SEGMENTED, files, databases=databases)
    if not inner:
        return _EMPTY
    if own_checkpoint(name) in files or _has_line(task_dir, id_, files):
        return _store(name, name, CUSTOM, files)
    return "no store that this layout knows: left out"


def _has_line(task_dir: Path, id_: StoreId, files: set[str]) -> bool:
    if CHECKPOINT not in files:
        return False
    path = task_dir / CHECKPOINT
    try:
        offsets = parse_checkpoint(read_source(path), path)
    except FileNotFoundError:
        return False
    topic = conventional_topic(id_)
    return any(changelog.topic == topic for changelog in offsets)


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


def _start(segment: str) -> int:
    return int(segment.rpartition(".")[2])

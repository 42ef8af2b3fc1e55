"""Names of folders and topics that Quix Streams gives (3.28: state/rocksdb/store.py,
models/topics/manager.py).

A store lies in ``<state_dir>/<consumer group>/<store>/<stream>/<partition>``, where the stream is
the topic that it reads, or several names joined. The application is the consumer group; the task is
``<stream>/<partition>``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from snapstore.errors import CaptureError, UnsafePathError
from snapstore.layouts.folders import is_folder, list_dir
from snapstore.layouts.quix.options import QuixOptions
from snapstore.model.identity import ChangelogPartition, StoreId

CONFIG = "rocksdict-config.json"
LOCK = "LOCK"
NO_CHANGELOG = "none"

Missed = Callable[[Path, CaptureError], None]
"""Told of a folder that cannot be read."""


def is_partition(name: str) -> bool:
    """Whether a folder of that name is a partition of a store."""
    return name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0"))


def stream_of(store: StoreId) -> str:
    return store.task.rpartition("/")[0]


def partition_of(store: StoreId) -> int:
    return int(store.task.rpartition("/")[2])


def made_topic(store: StoreId) -> str:
    """Return the name of the changelog that Quix Streams makes for a store.

    A stream that is itself an internal topic of the group loses the group and its double dashes.
    """
    group, stream = store.application, stream_of(store)
    if f"__{group}--" in stream:
        stream = stream.replace(f"__{group}", "").replace("--", ".")
    return f"changelog__{group}--{stream}--{store.store}"


def changelog_of(store: StoreId, options: QuixOptions) -> ChangelogPartition | None:
    """Return the changelog partition of a store, the configured topic first; None for none."""
    configured = options.changelogs.get(f"{stream_of(store)}/{store.store}")
    configured = configured or options.changelogs.get(store.store)
    if configured == NO_CHANGELOG:
        return None
    return ChangelogPartition(configured or made_topic(store), partition_of(store))


def partition_dir(state_dir: Path, store: StoreId) -> Path:
    """Return where a store partition belongs.

    Raises UnsafePathError when its names would lead elsewhere.
    """
    stream, _, partition = store.task.rpartition("/")
    names = (store.application, store.store, stream)
    if not is_partition(partition) or not all(map(_is_name, names)):
        raise UnsafePathError(
            f"{str(store)!r} does not name a store of Quix Streams",
            application=store.application,
            task=store.task,
            store=store.store,
        )
    return state_dir / store.application / store.store / stream / partition


def partition_dirs(group_dir: Path, missed: Missed | None = None) -> Iterator[Path]:
    """Yield the folders that are store partitions of one consumer group.

    ``missed`` is told of a folder that cannot be read; without it CaptureError is raised.
    """
    for store in _folders(group_dir, missed):
        for stream in _folders(store, missed):
            yield from (each for each in _folders(stream, missed) if is_partition(each.name))


def _folders(path: Path, missed: Missed | None) -> list[Path]:
    try:
        return sorted(path / entry.name for entry in list_dir(path) if is_folder(entry))
    except CaptureError as error:
        if missed is None:
            raise
        missed(path, error)
        return []


def _is_name(name: str) -> bool:
    return name not in {"", ".", ".."} and "/" not in name and name.isprintable()

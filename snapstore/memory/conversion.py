"""Carry the pairs of a store from one store type into another.

A memory snapshot becomes a RocksDB folder with ``restore_as``; a snapshot of a RocksDB folder
becomes a memory store with ``MemoryStore.restore``. Both hold plain pairs: what a changelog record
has as key and value, and nothing else. Stores of Kafka Streams do not: their values carry
timestamps or headers, and their keys windows, so they are not converted.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from snapstore.client import Snapstore
from snapstore.errors import NotReplayableError, PluginError, TargetNotEmptyError
from snapstore.memory.saving import write_side_file
from snapstore.model.snapshot import Description
from snapstore.ports import StoreView, StoreWriter, WritableBackend

_FAMILY = "default"
_BATCH = 5_000


def restore_as(
    repository: Snapstore,
    ref: str,
    target: Path | str,
    *,
    backend: str = "rocksdb",
    allow_unchecked_changelog: bool = False,
    allow_missed_tombstones: bool = False,
) -> int:
    """Restore a snapshot of plain pairs into a folder of another store type; return how many.

    The folder has the layout ``plain``: its offsets lie beside the files. Raises
    TargetNotEmptyError, NotReplayableError where the pairs are not plain, PluginError for a backend
    that cannot be written, and what ``Snapstore.restore`` raises.
    """
    folder = Path(target)
    if folder.exists() and any(folder.iterdir()):
        raise TargetNotEmptyError(f"{folder} is not empty", path=str(folder))
    writable = repository.registry.backend(backend, repository.config.backends.get(backend, {}))
    if not isinstance(writable, WritableBackend):
        raise PluginError(f"the backend {backend!r} cannot be written", backend=backend)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="snapstore-convert-", dir=folder.parent) as scratch:
        place = Path(scratch) / "store"
        report = repository.restore(
            [ref],
            target=place,
            allow_unchecked_changelog=allow_unchecked_changelog,
            allow_missed_tombstones=allow_missed_tombstones,
        )
        (restored,) = report.stores
        description = repository.repository.manifests.load(restored.snapshot_id).description
        source = repository.registry.backend(
            description.backend, repository.config.backends.get(description.backend, {})
        )
        with (
            source.open_view(restored.task_dir, description.root) as view,
            writable.open_writer(folder, ".") as writer,
        ):
            count = copy_pairs(plain_pairs(description, view), writer)
    write_side_file(folder, [each.position for each in description.positions])
    return count


def copy_pairs(pairs: Iterable[tuple[bytes, bytes]], writer: StoreWriter) -> int:
    """Make the only database of an empty store, and fill it; return how many pairs there were."""
    writer.create(".", [_FAMILY])
    count = 0
    rest = iter(pairs)
    while batch := list(islice(rest, _BATCH)):
        writer.write(".", {_FAMILY: batch})
        count += len(batch)
    return count


def plain_pairs(description: Description, view: StoreView) -> Iterator[tuple[bytes, bytes]]:
    """Return the pairs of a store; raises NotReplayableError unless they are plain pairs."""
    if description.layout != "plain":
        raise _not_plain(description, f"it was written by {description.generation}")
    if len(view.databases) != 1:
        raise _not_plain(description, f"it has {len(view.databases)} databases")
    (database,) = view.databases
    for family in view.families(database):
        if family != _FAMILY and next(iter(view.scan(database, family)), None) is not None:
            raise _not_plain(description, f"its column family {family} is not empty")
    return view.scan(database, _FAMILY)


def _not_plain(description: Description, why: str) -> NotReplayableError:
    return NotReplayableError(
        f"{description.store} is not a store of plain pairs: {why}",
        hint="restore it with its own layout and backend",
        store=str(description.store),
    )

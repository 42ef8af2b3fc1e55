"""Find the stores of Quix Streams below its state directory."""

from collections import defaultdict
from pathlib import Path

from snapstore.errors import ConfigError, StoreNotFoundError
from snapstore.layouts.quix.names import CONFIG, partition_dirs, stream_of
from snapstore.layouts.quix.options import QuixOptions
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.ports import Discovery

GENERATION = "quix-3"
STORE_TYPE = "key-value"

_CURRENT = "CURRENT"


def discover(
    state_dir: Path, application: str | None, layout: str, options: QuixOptions
) -> Discovery:
    """Return the stores of one consumer group, or of all.

    Raises StoreNotFoundError, or ConfigError when a configured changelog could be of several.
    """
    if not state_dir.is_dir():
        raise StoreNotFoundError(f"{state_dir} is not there", path=str(state_dir))
    folder = state_dir.resolve()
    if application is not None and not (folder / application).is_dir():
        raise StoreNotFoundError(
            f"there is no consumer group {application!r} in {state_dir}",
            hint="the state directory is the folder above that of the consumer group",
            path=str(state_dir),
        )
    groups = [folder / application] if application else sorted(folder.iterdir())
    found, notes = [], []
    for group in groups:
        for partition in partition_dirs(group):
            if not (partition / _CURRENT).exists():
                notes.append(f"{partition} is skipped: it holds no RocksDB")
                continue
            stream, name = partition.parent.name, partition.parent.parent.name
            store = StoreId(group.name, f"{stream}/{partition.name}", name)
            found.append(_location(store, partition, layout))
    if not found:
        notes.append(f"{state_dir}: no store of Quix Streams, which lie four folders deep")
    found.sort(key=lambda location: location.store.order)
    _check_changelogs(found, options)
    return Discovery(locations=tuple(found), notes=tuple(sorted(notes)))


def _location(store: StoreId, folder: Path, layout: str) -> StoreLocation:
    return StoreLocation(
        store=store,
        layout=layout,
        backend="rocksdb",
        store_type=STORE_TYPE,
        generation=GENERATION,
        task_dir=folder,
        root=".",
        side_files=(CONFIG,) if (folder / CONFIG).exists() else (),
    )


def _check_changelogs(found: list[StoreLocation], options: QuixOptions) -> None:
    """Refuse a topic that is configured for a name which stores of several streams have."""
    streams: dict[tuple[str, str], set[str]] = defaultdict(set)
    for location in found:
        streams[location.store.application, location.store.store].add(stream_of(location.store))
    for (_, name), of in streams.items():
        if name in options.changelogs and len(of) > 1:
            raise ConfigError(
                f"a changelog is configured for {name!r}, and {len(of)} streams have such a store",
                hint=f"name the stream too: {min(of)}/{name}",
                store=name,
                streams=sorted(of),
            )

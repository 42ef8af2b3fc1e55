"""Find the stores of Quix Streams below its state directory."""

from collections import defaultdict
from pathlib import Path

from snapstore.errors import CaptureError, ConfigError, StoreNotFoundError
from snapstore.layouts.folders import is_there, list_dir
from snapstore.layouts.quix.names import CONFIG, partition_dirs, stream_of
from snapstore.layouts.quix.options import QuixOptions
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.model.unread import Unread
from snapstore.ports import Discovery

GENERATION = "quix-3"
STORE_TYPE = "key-value"

_CURRENT = "CURRENT"


def discover(
    state_dir: Path, application: str | None, layout: str, options: QuixOptions
) -> Discovery:
    """Return the stores of one consumer group, or of all.

    What cannot be read stops nothing else. Raises StoreNotFoundError, CaptureError when the
    directory itself cannot be read, or ConfigError when a configured changelog could be of several.
    """
    if not is_there(state_dir, folder=True):
        raise StoreNotFoundError(f"{state_dir} is not there", path=str(state_dir))
    folder = state_dir.resolve()
    if application is not None and not (folder / application).is_dir():
        raise StoreNotFoundError(
            f"there is no consumer group {application!r} in {state_dir}",
            hint="the state directory is the folder above that of the consumer group",
            path=str(state_dir),
        )
    groups = [application] if application else sorted(entry.name for entry in list_dir(folder))
    found: list[StoreLocation] = []
    notes: list[str] = []
    unread: list[Unread] = []

    def missed(path: Path, error: CaptureError) -> None:
        unread.append(Unread(store=_store(path, folder), path=path, error=error))

    for group in groups:
        for partition in partition_dirs(folder / group, missed):
            try:
                whole = is_there(partition / _CURRENT)
            except CaptureError as error:
                missed(partition, error)
                continue
            if whole:
                found.append(_location(_store(partition, folder), partition, layout))
            else:
                notes.append(f"{partition} is skipped: it holds no RocksDB")
    if not found and not unread:
        notes.append(f"{state_dir}: no store of Quix Streams, which lie four folders deep")
    found.sort(key=lambda location: location.store.order)
    _check_changelogs(found, options)
    return Discovery(locations=tuple(found), notes=tuple(sorted(notes)), unread=tuple(unread))


def _store(path: Path, state_dir: Path) -> StoreId:
    """Return the store that a folder is, as far as its path tells: the rest is left empty."""
    group, store, stream, partition = (*path.relative_to(state_dir).parts, "", "", "")[:4]
    return StoreId(group, f"{stream}/{partition}" if partition else "", store)


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

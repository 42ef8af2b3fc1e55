"""Bring the files of a memory store back from a repository."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from snapstore.client import Snapstore
from snapstore.errors import ConfigError, NotReplayableError, SnapshotNotFoundError
from snapstore.memory.conversion import plain_pairs
from snapstore.memory.pair_map import PairMap
from snapstore.memory.saving import save
from snapstore.memory.work_folder import WorkFolder
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.resume import Overrides
from snapstore.model.snapshot import Description, Fence
from snapstore.pairs.folder import remove_leftovers

BACKEND = "memory"


def restore_files(
    client: Snapstore,
    store: StoreId,
    work: WorkFolder,
    *,
    ref: str | None,
    replace: bool,
    overrides: Overrides,
) -> Mapping[ChangelogPartition, Fence]:
    """Put the files of a snapshot into the work folder; return its fences.

    Pairs of a store of another type are written into a file of their own. Raises
    SnapshotNotFoundError, NotReplayableError, and what ``Snapstore.restore`` raises.
    """
    newest = _newest(client, store) if ref is None else client.find(ref).description
    if newest.store != store:
        raise ConfigError(f"{ref!r} means a snapshot of {newest.store}, not of {store}")
    if newest.backend == BACKEND:
        return _fences(_restore(client, store, work.files, ref, overrides, replace=replace))
    if not replace:
        work.require_empty("pass replace=True to give it up")
    with TemporaryDirectory(prefix="restore-", dir=work.path) as scratch:
        target = Path(scratch) / "store"
        description = _restore(client, store, target, ref, overrides, replace=False)
        backend = client.registry.backend(
            description.backend, client.config.backends.get(description.backend, {})
        )
        with backend.open_view(target, description.root) as view:
            pairs = PairMap(plain_pairs(description, view), _offsets(description))
    frozen = pairs.freeze()
    remove_leftovers(work.files, save(work.files, (), frozen, lambda _: None))
    return _fences(description)


def _newest(client: Snapstore, store: StoreId) -> Description:
    listed = client.repository.catalog.newest_of(store)
    if listed is None:
        raise SnapshotNotFoundError(
            f"there is no snapshot of {store}", hint="begin with an empty store", store=str(store)
        )
    return client.load(listed).description


def _restore(
    client: Snapstore,
    store: StoreId,
    target: Path,
    ref: str | None,
    overrides: Overrides,
    *,
    replace: bool,
) -> Description:
    """Restore into a folder; return the description of the snapshot that was chosen."""
    restore = partial(
        client.restore,
        target=target,
        replace=replace,
        allow_unchecked_changelog=overrides.allow_unchecked_changelog,
        allow_missed_tombstones=overrides.allow_missed_tombstones,
    )
    if ref is None:
        report = restore(application=store.application, task=store.task, store=store.store)
    else:
        report = restore([ref])
    (restored,) = report.stores
    description = client.repository.manifests.load(restored.snapshot_id).description
    if description.layout != "plain":
        raise NotReplayableError(
            f"{description.store} was written by {description.generation}, not as plain pairs",
            hint="restore it with its own layout",
            store=str(description.store),
        )
    return description


def _offsets(description: Description) -> dict[ChangelogPartition, int]:
    return {each.position.changelog: each.position.applied_offset for each in description.positions}


def _fences(description: Description) -> dict[ChangelogPartition, Fence]:
    return {
        each.position.changelog: each.fence
        for each in description.positions
        if each.fence is not None
    }

"""Look whether snapshots can be restored, without restoring them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from snapstore.errors import (
    BlobCorruptError,
    BlobMissingError,
    ConfigError,
    IntegrityError,
    SnapshotNotFoundError,
    SourceDamagedError,
    StoreNotFoundError,
    StoreUnsupportedError,
    UnsafePathError,
)
from snapstore.model.guarantee import AUTO, notes_on_open_files
from snapstore.model.listing import ListedSnapshot
from snapstore.model.records import OFFSETS_FAMILY
from snapstore.model.report import Advanced, StoreFinished, StoreStarted
from snapstore.model.segment_times import misplaced_segment
from snapstore.model.snapshot import Description, Manifest
from snapstore.model.temporary import temporary_folder
from snapstore.model.units import count as spelled
from snapstore.operations.fetch import ARCHIVE_CLASSES, BlobToFetch, fetch_all, read_or_explain
from snapstore.operations.rate_limit import Pace, RateLimit
from snapstore.operations.stage_files import FileWriter, Permissions
from snapstore.operations.stopping import Stop, in_parallel, results_of, until_failed
from snapstore.operations.verify_needs import Need, needs_of, sample, walk
from snapstore.operations.verify_report import Damage, DamageKind, VerifyReport
from snapstore.ports import Listener, ObjectStat, StoreBackend
from snapstore.repository import Repository, keys

_KEYS_COMPARED = 1000
_LIST_INSTEAD_OF_ASKING = 500


class VerifyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How closely to look.

    ``read_data`` reads and hashes the blobs; ``sample_percent`` of them: those that come after the
    name ``after``, and then from the first on, or with ``seed`` such that are drawn by lot.
    ``open_store`` also brings each store into a folder below ``scratch``, opens it and reads every
    entry. ``guarantee`` is the application's `processing.guarantee` as configured.
    """

    read_data: bool = False
    sample_percent: float = 100.0
    seed: int | None = None
    after: str = ""
    open_store: bool = False
    scratch: Path | None = None
    guarantee: str = AUTO
    parallel: int = 8
    limit_bytes_per_second: int | None = None


def verify(
    repository: Repository,
    listed: Sequence[ListedSnapshot],
    *,
    backends: Mapping[str, StoreBackend],
    listener: Listener,
    options: VerifyOptions,
    unusable: Callable[[Description], str | None] = lambda _: None,
) -> VerifyReport:
    """Return the damage of those snapshots: none when every one of them can be restored.

    One that is taken out of the catalog meanwhile has no damage, and is not counted. ``unusable``
    says why nothing here can restore a snapshot of that description.
    Raises what the storage raises: that it cannot be reached is no damage.
    """
    if not 0 < options.sample_percent <= 100:
        raise ConfigError("the sample must be above 0 and at most 100 percent")
    damage: list[Damage] = []
    manifests = _load(repository, listed, damage)
    damage += [
        _of_snapshot("unopenable", item, reason)
        for item, manifest in manifests.items()
        if (reason := unusable(manifest.description)) is not None
    ]
    needs = needs_of(manifests)
    stats = _stats(repository, needs, options.parallel)
    damage += [found for need in needs.values() if (found := _judge(need, stats.get(need.blob)))]
    broken = {found.blob for found in damage if found.blob}
    sound = [need for name, need in needs.items() if name not in broken]
    read: list[Need] = []
    if options.read_data:
        read = (
            walk(sound, options.sample_percent, options.after)
            if options.seed is None
            else sample(sound, options.sample_percent, options.seed)
        )
        damage += _read_all(repository, read, listener, options)
        broken |= {found.blob for found in damage if found.blob}
    opened, entries = 0, 0
    unread: list[str] = []
    if options.open_store:
        for item, manifest in manifests.items():
            if any(entry.blob in broken for entry in manifest.files):
                continue
            if unusable(manifest.description) is not None:
                continue
            try:
                opened_damage, count = _open(
                    repository, item, manifest, backends, listener, options
                )
            except StoreUnsupportedError as error:
                unread.append(f"{item.store}: its entries were not read: {error.message}")
                continue
            opened += 1
            entries += count
            damage += opened_damage
    spoiled = {name for found in damage for name in found.snapshots}
    gone = {
        item.id for item in listed if item.id in spoiled and not repository.catalog.is_listed(item)
    }
    return VerifyReport(
        snapshots=sum(item.id not in gone for item in listed),
        blobs=len(needs),
        read_blobs=len(read),
        read_bytes=sum(need.size for need in read),
        read_up_to=read[-1].blob if read and options.seed is None else None,
        opened_stores=opened,
        scanned_entries=entries,
        damage=tuple(_still_there(damage, [item for item in listed if item.id not in gone])),
        notes=(
            *unread,
            *notes_on_open_files(
                (each.description for each in manifests.values()), options.guarantee
            ),
        ),
    )


def _still_there(damage: Iterable[Damage], listed: Sequence[ListedSnapshot]) -> Iterator[Damage]:
    """Leave out what only snapshots would need that nobody has any more."""
    stores = {item.id: str(item.store) for item in listed}
    for found in damage:
        left = [name for name in found.snapshots if name in stores]
        if left:
            yield msgspec.structs.replace(
                found,
                snapshots=tuple(left),
                stores=tuple(sorted({stores[name] for name in left})),
            )


def _load(
    repository: Repository, listed: Sequence[ListedSnapshot], damage: list[Damage]
) -> dict[ListedSnapshot, Manifest]:
    manifests = {}
    for item in listed:
        kind: DamageKind = "entry"
        try:
            snapshot = repository.catalog.load(item)
            kind = "manifest"
            manifest = repository.manifests.load(item.id)
        except (IntegrityError, SnapshotNotFoundError, UnsafePathError) as error:
            damage.append(_of_snapshot(kind, item, error.message))
            continue
        if manifest.description == snapshot.description:
            manifests[item] = manifest
        else:
            reason = "the manifest describes something else than the catalog entry"
            damage.append(_of_snapshot("manifest", item, reason))
    return manifests


def _stats(
    repository: Repository, needs: Mapping[str, Need], parallel: int
) -> dict[str, ObjectStat]:
    """Ask for each blob, or list them all where that is fewer requests."""
    storage = repository.storage
    if len(needs) > _LIST_INSTEAD_OF_ASKING:
        return {
            name: stat
            for stat in storage.list(keys.BLOBS)
            if (name := stat.key.rpartition("/")[2]) in needs and stat.key == keys.blob(name)
        }
    found = in_parallel(
        lambda name: (name, storage.stat(keys.blob(name))), needs, parallel=parallel
    )
    return {name: stat for name, stat in found if stat is not None}


def _judge(need: Need, stat: ObjectStat | None) -> Damage | None:
    if stat is None:
        return _of_blob("missing", need, f"blob {need.blob} is missing")
    if stat.size != need.size:
        return _of_blob(
            "size", need, f"blob {need.blob} holds {stat.size} bytes instead of {need.size}"
        )
    if stat.storage_class in ARCHIVE_CLASSES:
        return _of_blob(
            "archived",
            need,
            f"blob {need.blob} lies in storage class {stat.storage_class} and cannot be read",
            storage_class=stat.storage_class,
        )
    return None


def _read_all(
    repository: Repository, needs: Iterable[Need], listener: Listener, options: VerifyOptions
) -> list[Damage]:
    """Read and hash blobs, several at a time and a chunk of each in memory.

    An interrupt gives up what is being read, chunk by chunk.
    """
    limit = _limit(options)
    stop = Stop()

    def read(need: Need) -> Damage | None:
        stop.check()
        store = next(iter(need.snapshots.values())).store
        digest = hashlib.sha256()
        pace = Pace(limit, need.size, stop.sleep)
        try:
            for chunk in read_or_explain(repository.storage, need.blob, start=0, stop=need.size):
                stop.check()
                pace.passed(len(chunk))
                digest.update(chunk)
                listener(Advanced(store=store, stage="verify", amount=len(chunk)))
        except BlobMissingError as error:
            return _of_blob("missing", need, error.message)
        except BlobCorruptError as error:
            return _of_blob("corrupt", need, error.message)
        if digest.hexdigest() != need.sha256:
            return _of_blob("corrupt", need, f"blob {need.blob} does not hash to its name")
        return None

    with ThreadPoolExecutor(max_workers=options.parallel) as pool:
        futures: list[Future[Damage | None]] = []
        try:
            futures.extend(pool.submit(read, need) for need in needs)
            until_failed(futures)
        finally:
            stop.order()
            for future in futures:
                future.cancel()
    return [found for found in results_of(futures) if found is not None]


def _open(
    repository: Repository,
    listed: ListedSnapshot,
    manifest: Manifest,
    backends: Mapping[str, StoreBackend],
    listener: Listener,
    options: VerifyOptions,
) -> tuple[list[Damage], int]:
    """Bring one store into a scratch folder and read every entry of it."""
    store = listed.store
    total = sum(entry.size for entry in manifest.files if entry.blob is not None)
    listener(StoreStarted(store=store, stage="verify", total=total))
    with temporary_folder(options.scratch, of="a store", setting="--scratch") as scratch:
        try:
            _materialise(repository, listed, manifest, scratch, listener, options)
            count = _scan(manifest, scratch, backends)
        except StoreUnsupportedError as error:
            listener(StoreFinished(store=store, outcome=error.message, ok=False))
            raise
        except (IntegrityError, SourceDamagedError, StoreNotFoundError) as error:
            listener(StoreFinished(store=store, outcome=error.message, ok=False))
            kind: DamageKind = "corrupt" if isinstance(error, IntegrityError) else "unopenable"
            return [_of_snapshot(kind, listed, error.message)], 0
    listener(
        StoreFinished(store=store, outcome=f"{spelled(count, 'entry', 'entries')} read", ok=True)
    )
    return [], count


def _materialise(
    repository: Repository,
    listed: ListedSnapshot,
    manifest: Manifest,
    scratch: Path,
    listener: Listener,
    options: VerifyOptions,
) -> None:
    warnings: list[str] = []
    writer = FileWriter(Permissions(file_mode=0o600, dir_mode=0o700), warnings.append)
    blobs = []
    for entry in manifest.files:
        path = scratch / entry.name
        writer.make_folder(path.parent)
        if entry.inline is not None:
            writer.write(path, entry.inline, entry.mode)
        elif entry.blob is not None:
            blobs.append(
                BlobToFetch(blob=entry.blob, sha256=entry.sha256, size=entry.size, part=path)
            )
    fetch_all(
        repository.storage,
        blobs,
        parallel=options.parallel,
        limit=_limit(options),
        advanced=lambda _, amount: listener(
            Advanced(store=listed.store, stage="verify", amount=amount)
        ),
        fetched=lambda _: None,
    )


def _scan(manifest: Manifest, scratch: Path, backends: Mapping[str, StoreBackend]) -> int:
    """Read every entry of every family: a broken block is found by nothing else."""
    description = manifest.description
    with backends[description.backend].open_view(scratch, description.root) as view:
        if view.databases != tuple(sorted(description.databases)):
            raise SourceDamagedError(
                f"{description.store} holds other databases than its snapshot says",
                expected=sorted(description.databases),
                found=list(view.databases),
            )
        samples: dict[str, list[bytes]] = {database: [] for database in view.databases}
        count = 0
        for database in view.databases:
            for family in view.families(database):
                for key, _ in view.scan(database, family):
                    count += 1
                    if family != OFFSETS_FAMILY and len(samples[database]) < _KEYS_COMPARED:
                        samples[database].append(key)
    misplaced = misplaced_segment(description.store.store, samples)
    if misplaced is not None:
        raise SourceDamagedError(
            f"{misplaced[0]} holds rows of the time of {misplaced[1]}: two segments were exchanged "
            "before the snapshot was taken",
            file=misplaced[0],
        )
    return count


def _limit(options: VerifyOptions) -> RateLimit | None:
    rate = options.limit_bytes_per_second
    return None if rate is None else RateLimit(rate)


def _of_blob(
    kind: DamageKind, need: Need, reason: str, *, storage_class: str | None = None
) -> Damage:
    return Damage(
        kind=kind,
        reason=reason,
        blob=need.blob,
        files=tuple(sorted(need.files)),
        snapshots=tuple(need.snapshots),
        stores=tuple(sorted({str(listed.store) for listed in need.snapshots.values()})),
        storage_class=storage_class,
    )


def _of_snapshot(kind: DamageKind, listed: ListedSnapshot, reason: str) -> Damage:
    return Damage(kind=kind, reason=reason, snapshots=(listed.id,), stores=(str(listed.store),))

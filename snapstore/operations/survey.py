"""Look at everything that lies in a repository, and at what names what."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from snapstore.errors import (
    FormatUnsupportedError,
    IntegrityError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
)
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Description, Manifest
from snapstore.operations.fetch import ARCHIVE_CLASSES
from snapstore.operations.stopping import in_parallel
from snapstore.ports import ObjectStat
from snapstore.repository import Repository, SweptRecord, keys
from snapstore.repository.catalog import listing_of

Fault = Literal["entry", "manifest", "missing", "size", "archived", "corrupt"]

T = TypeVar("T")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot that the catalog lists.

    ``blobs`` are those that its manifest names, None when that cannot be known. ``damage`` says why
    it cannot be restored, ``broken`` are the blobs to blame, ``newer`` says that a newer snapstore
    wrote it. ``history`` tells topics of one name apart; empty where it is not known.
    ``stored_at`` is when the storage had the entry; ``description`` what entry and manifest agree
    on, None where they do not.
    """

    listed: ListedSnapshot
    stored_at: datetime
    description: Description | None = None
    blobs: tuple[str, ...] | None
    damage: str | None = None
    fault: Fault | None = None
    broken: tuple[str, ...] = ()
    history: str = ""
    newer: bool = False


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest without a catalog entry.

    ``listed`` is what its entry would be, None when it cannot be read; ``newer``: because a newer
    snapstore wrote it.
    """

    id: str
    stat: ObjectStat
    listed: ListedSnapshot | None
    blobs: tuple[str, ...] = ()
    damage: str | None = None
    newer: bool = False


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in a repository. Names and ids with the facts of their objects.

    ``condemned`` and ``removed`` are marks; ``records`` tell which condemned blobs were found gone.
    ``foreign`` are keys in the repository's folders that mean nothing; ``litter`` are those of
    consoles, file managers and file systems, which hinder nobody.
    """

    blobs: Mapping[str, ObjectStat]
    manifests: Mapping[str, ObjectStat]
    condemned: Mapping[str, ObjectStat]
    removed: Mapping[str, ObjectStat]
    records: tuple[SweptRecord, ...]
    snapshots: tuple[Found, ...]
    orphans: tuple[Orphan, ...]
    pinned: frozenset[str]
    foreign: tuple[str, ...]
    litter: tuple[str, ...] = ()


def survey(
    repository: Repository, *, parallel: int, tick: Callable[[], None] = lambda: None
) -> Survey:
    """Read every listing, every catalog entry and every manifest; ``tick`` is called now and then.

    In this order: blobs, manifests, marks, catalog. So a blob that is seen and that no snapshot
    names here was there before the catalog was read. Raises what the storage raises.
    """
    strange: list[str] = []

    def stats(prefix: str, parse: Callable[[str], str]) -> dict[str, ObjectStat]:
        return keys.parsed(_ticking(repository.storage.list(prefix), tick), parse, strange)

    blobs = stats(keys.BLOBS, keys.parse_blob)
    manifests = stats(keys.MANIFESTS, keys.parse_manifest)
    condemned = stats(keys.CONDEMNED, keys.parse_condemned)
    removed = stats(keys.REMOVED, keys.parse_removed)
    records = repository.marks.records(strange)
    strange += [
        stat.key for stat in repository.storage.list(keys.LEASES) if not keys.is_lease(stat.key)
    ]
    listing = repository.catalog.list_all()
    tick()
    known = {item.id for item in listing.snapshots}

    def found(listed: ListedSnapshot) -> Found | None:
        return _found(repository, listed, listing.stored_at[listed], blobs)

    def orphan(snapshot_id: str) -> Orphan | None:
        return _orphan(repository, snapshot_id, manifests[snapshot_id], blobs)

    snapshots = in_parallel(found, listing.snapshots, parallel=parallel, tick=tick)
    unlisted = [each for each in manifests if each not in known]
    orphans = in_parallel(orphan, unlisted, parallel=parallel, tick=tick)
    pinned = frozenset(stats(keys.PINS, keys.parse_pin))
    strange += listing.foreign
    return Survey(
        blobs=blobs,
        manifests=manifests,
        condemned=condemned,
        removed=removed,
        records=records,
        snapshots=tuple(each for each in snapshots if each),
        orphans=tuple(each for each in orphans if each),
        pinned=pinned,
        foreign=tuple(key for key in strange if not keys.is_litter(key)),
        litter=tuple(key for key in strange if keys.is_litter(key)),
    )


def _ticking(items: Iterable[T], tick: Callable[[], None]) -> Iterator[T]:
    for item in items:
        tick()
        yield item


def _found(
    repository: Repository,
    listed: ListedSnapshot,
    stored_at: datetime,
    blobs: Mapping[str, ObjectStat],
) -> Found | None:
    """Read and judge a listed snapshot; None when it was removed meanwhile."""
    entry_damage: SnapstoreError | None = None
    described: Description | None = None
    try:
        described = repository.catalog.load(listed).description
    except SnapshotNotFoundError:
        return None
    except (IntegrityError, RefusedError) as error:
        entry_damage = error
    try:
        manifest = repository.manifests.load(listed.id)
    except (IntegrityError, RefusedError) as error:
        if not repository.catalog.is_listed(listed):
            return None
        return Found(
            listed=listed,
            stored_at=stored_at,
            blobs=None,
            damage=error.message,
            fault="manifest",
            newer=_is_newer(error, entry_damage),
        )
    facts = Found(
        listed=listed,
        stored_at=stored_at,
        blobs=named_by(manifest),
        history=_history(manifest.description),
        newer=_is_newer(entry_damage),
    )
    if entry_damage is not None:
        return _damaged(facts, "entry", entry_damage.message)
    if described != manifest.description:
        return _damaged(facts, "entry", "the entry describes something else than the manifest")
    fault, damage, broken = judge_blobs(manifest, _stat_of(repository, blobs))
    return msgspec.structs.replace(
        facts, description=described, fault=fault, damage=damage, broken=broken
    )


def _damaged(facts: Found, fault: Fault, damage: str) -> Found:
    return msgspec.structs.replace(facts, fault=fault, damage=damage)


def _orphan(
    repository: Repository, snapshot_id: str, stat: ObjectStat, blobs: Mapping[str, ObjectStat]
) -> Orphan | None:
    try:
        manifest = repository.manifests.load(snapshot_id)
        listed = listing_of(manifest.description, snapshot_id)
    except (IntegrityError, RefusedError) as error:
        if repository.storage.stat(keys.manifest(snapshot_id)) is None:
            return None
        newer = isinstance(error, FormatUnsupportedError)
        return Orphan(id=snapshot_id, stat=stat, listed=None, damage=error.message, newer=newer)
    _, damage, _ = judge_blobs(manifest, _stat_of(repository, blobs))
    return Orphan(id=snapshot_id, stat=stat, listed=listed, blobs=named_by(manifest), damage=damage)


def named_by(manifest: Manifest) -> tuple[str, ...]:
    """Return the blobs that a manifest names, each once."""
    return tuple({sys.intern(file.blob): None for file in manifest.files if file.blob is not None})


def judge_blobs(
    manifest: Manifest, stat_of: Callable[[str], ObjectStat | None]
) -> tuple[Fault | None, str | None, tuple[str, ...]]:
    """Return what is wrong with the blobs of a manifest, and which of them are not there whole."""
    stats = {name: stat_of(name) for name in named_by(manifest)}
    sizes = {file.blob: file.size for file in manifest.files if file.blob is not None}
    missing = [name for name, stat in stats.items() if stat is None]
    wrong = [name for name, stat in stats.items() if stat and stat.size != sizes[name]]
    archived = [stat for stat in stats.values() if stat and stat.storage_class in ARCHIVE_CLASSES]
    broken = (*missing, *wrong)
    if missing:
        return "missing", f"{_several(missing)} missing", broken
    if wrong:
        return "size", f"{_several(wrong)} of another size than the snapshot says", broken
    if archived:
        name = keys.parse_blob(archived[0].key)
        return "archived", f"blob {name} lies in storage class {archived[0].storage_class}", ()
    return None, None, ()


def _several(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"blob {names[0]} is"
    return f"{len(names)} blobs, such as {names[0]}, are"


def _stat_of(
    repository: Repository, blobs: Mapping[str, ObjectStat]
) -> Callable[[str], ObjectStat | None]:
    """Look into the listing, then for what may have come after it."""
    return lambda name: blobs.get(name) or repository.storage.stat(keys.blob(name))


def _is_newer(*errors: SnapstoreError | None) -> bool:
    return any(isinstance(error, FormatUnsupportedError) for error in errors)


def _history(description: Description) -> str:
    fences = [position.fence for position in description.positions]
    return ",".join(f"{fence.cluster_id}/{fence.topic_id}" for fence in fences if fence is not None)

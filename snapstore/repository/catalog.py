"""The catalog: which snapshots exist. An entry put there is what makes a snapshot one."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from snapstore.errors import (
    AmbiguousRefError,
    ConflictError,
    IntegrityError,
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    SnapshotNotFoundError,
    StorageError,
    UnknownOffsetError,
)
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot, newest, newest_first
from snapstore.model.reference import IdPrefix, Reference, StorePartition
from snapstore.model.snapshot import Description, Snapshot
from snapstore.ports import ObjectStorage
from snapstore.repository import encoding, keys

MAX_ENTRY_BYTES = 4 << 20


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Snapshots by application, task and store, newest first, and keys that are none.

    ``stored_at`` says when the storage had their entries, by its own clock.
    """

    snapshots: tuple[ListedSnapshot, ...]
    foreign: tuple[str, ...]
    stored_at: Mapping[ListedSnapshot, datetime] = {}


class Catalog:
    """The entries of one repository. Listing reads no object."""

    def __init__(self, storage: ObjectStorage, *, read_back: bool) -> None:
        self._storage = storage
        self._read_back = read_back

    def publish(self, snapshot: Snapshot) -> ListedSnapshot:
        """Make a snapshot exist. All that it names must be stored before.

        Safe to repeat: an entry of the same manifest is this one, though a repair may have put it
        there. Raises ConflictError when the key holds anything else. With ``read_back`` an entry
        that did not arrive as sent is taken out again, and StorageError raised.
        """
        listed = listed_of(snapshot)
        key, body = keys.entry(listed), encoding.encode(snapshot)
        try:
            self._storage.put(key, body, if_absent=True)
        except ObjectExistsError as error:
            if not self._is_same(listed, snapshot):
                raise ConflictError(
                    f"the catalog holds another entry for snapshot {snapshot.id[:12]}", key=key
                ) from error
            return listed
        except StorageError:
            # The answer was lost, not always the request.
            if not self._holds(key, body):
                raise
        if self._read_back and self._storage.get(key, limit_bytes=MAX_ENTRY_BYTES) != body:
            self._storage.delete([key])
            raise StorageError("the storage holds other bytes than were sent to it", key=key)
        return listed

    def list_store(self, store: StoreId) -> Listing:
        """List the snapshots of one store."""
        return self._list(keys.store_prefix(store))

    def list_application(self, application: str) -> Listing:
        """List the snapshots of all stores of one application."""
        return self._list(keys.application_prefix(application))

    def list_all(self) -> Listing:
        """List every snapshot."""
        return self._list(keys.CATALOG)

    def newest_of(self, store: StoreId) -> ListedSnapshot | None:
        """Return the newest snapshot of one store; None only if the catalog was read to its end."""
        return newest(self.list_store(store).snapshots)

    def is_listed(self, listed: ListedSnapshot) -> bool:
        """Whether the entry is still there."""
        return self._storage.stat(keys.entry(listed)) is not None

    def load(self, listed: ListedSnapshot) -> Snapshot:
        """Read an entry and check that it is what its key says.

        Raises SnapshotNotFoundError, ManifestInvalidError or FormatUnsupportedError.
        """
        key = keys.entry(listed)
        try:
            body = self._storage.get(key, limit_bytes=MAX_ENTRY_BYTES)
        except ObjectNotFoundError as error:
            raise SnapshotNotFoundError(
                f"snapshot {listed.id[:12]} is not in the catalog any more", id=listed.id
            ) from error
        what = f"the catalog entry of snapshot {listed.id[:12]}"
        snapshot = encoding.decode(body, Snapshot, what=what)
        if keys.entry(listed_of(snapshot)) != key:
            raise ManifestInvalidError(f"{what} is not what its key says", key=key)
        return snapshot

    def find(self, reference: Reference) -> ListedSnapshot:
        """Return the one snapshot that a reference means.

        Raises SnapshotNotFoundError, or AmbiguousRefError with ``candidates`` when several
        snapshots begin with that id, or several stores fit that name.
        """
        found = self._candidates(reference)
        if not found:
            raise SnapshotNotFoundError(
                f"no snapshot fits {reference.text!r}",
                hint="see which there are: snapstore list",
                ref=reference.text,
            )
        several = (
            found
            if isinstance(reference.subject, IdPrefix)
            else {item.store: item for item in found}
        )
        if len(several) > 1:
            names = (
                [f"{item.id[:12]} {item.store}" for item in found]
                if isinstance(reference.subject, IdPrefix)
                else [str(store) for store in sorted(several, key=lambda item: item.order)]
            )
            raise AmbiguousRefError(
                f"{reference.text!r} fits several: {', '.join(names)}",
                hint="write more of the id, or application/task/store"
                if len({item.id for item in found}) > 1
                else "a snapshot has one entry, the others are forged: snapstore repair",
                ref=reference.text,
                candidates=names,
            )
        return max(found, key=lambda item: item.age_order)

    def remove(self, listed: Iterable[ListedSnapshot]) -> None:
        """Take entries out; the bytes stay until a sweep. Whether it may be done is not asked.

        Raises StorageError with ``failed`` when some would not go.
        """
        self._storage.delete([keys.entry(item) for item in listed])

    def _list(self, prefix: str) -> Listing:
        stored_at: dict[ListedSnapshot, datetime] = {}
        foreign: list[str] = []
        for stat in self._storage.list(prefix):
            try:
                stored_at[keys.parse_entry(stat.key)] = stat.modified_at
            except ValueError:
                foreign.append(stat.key)
        return Listing(
            snapshots=tuple(newest_first(stored_at)), foreign=tuple(foreign), stored_at=stored_at
        )

    def _candidates(self, reference: Reference) -> list[ListedSnapshot]:
        match reference.subject:
            case IdPrefix(prefix=prefix):
                return [item for item in self.list_all().snapshots if item.id.startswith(prefix)]
            case StoreId() as store:
                listed = self.list_store(store).snapshots
            case StorePartition() as wanted:
                inside = self.list_application(wanted.application).snapshots
                listed = tuple(item for item in inside if wanted.matches(item.store))
            case ChangelogPartition() as changelog:
                return list(self._of_changelog(changelog, reference))
        if reference.offset is not None and any(item.changelogs > 1 for item in listed):
            raise AmbiguousRefError(
                f"{listed[0].store} has several changelog partitions, so {reference.text!r} "
                "does not say which offset is meant",
                hint="write topic:partition@OFFSET",
                ref=reference.text,
            )
        return [item for item in listed if reference.admits(item, item.applied_offset)]

    def _of_changelog(
        self, changelog: ChangelogPartition, reference: Reference
    ) -> Iterator[ListedSnapshot]:
        """Yield what was taken of one changelog partition: the topic is in the entries only.

        A store keeps its changelog, so its newest entry tells whether the others are to be read.
        Where that one is damaged an older one tells; if it was meant, its damage is raised.
        """
        by_store: dict[StoreId, list[ListedSnapshot]] = {}
        for item in self.list_all().snapshots:
            by_store.setdefault(item.store, []).append(item)
        for items in by_store.values():
            damage: IntegrityError | None = None
            for item in items:
                try:
                    applied_offset = self._applied(item, changelog)
                except IntegrityError as error:
                    damage = damage or error
                    continue
                if applied_offset is None:
                    break
                if damage is not None:
                    raise damage
                if reference.admits(item, applied_offset):
                    yield item
                    break
            else:
                if damage is not None:
                    raise damage

    def _applied(self, listed: ListedSnapshot, changelog: ChangelogPartition) -> int | None:
        for entry in self.load(listed).description.positions:
            if entry.position.changelog == changelog:
                return entry.position.applied_offset
        return None

    def _is_same(self, listed: ListedSnapshot, snapshot: Snapshot) -> bool:
        """Whether the entry that is there is of this snapshot, whoever counted what was new."""
        try:
            return self.load(listed).description == snapshot.description
        except (IntegrityError, SnapshotNotFoundError):
            return False

    def _holds(self, key: str, body: bytes) -> bool:
        try:
            return self._storage.get(key, limit_bytes=MAX_ENTRY_BYTES) == body
        except (ObjectNotFoundError, StorageError):
            return False


def listed_of(snapshot: Snapshot) -> ListedSnapshot:
    """Return what the key of a snapshot's entry says.

    Raises UnknownOffsetError when an applied offset is negative: such numbers mean "not known".
    """
    return listing_of(snapshot.description, snapshot.id)


def listing_of(description: Description, snapshot_id: str) -> ListedSnapshot:
    """Return what the key of the entry of a snapshot of that description says; raises the same."""
    offsets = [entry.position.applied_offset for entry in description.positions]
    if any(offset < 0 for offset in offsets):
        raise UnknownOffsetError(
            f"{description.store} has no applied offset", applied_offset=min(offsets)
        )
    captured_at = description.captured_at
    return ListedSnapshot(
        store=description.store,
        id=snapshot_id,
        captured_at=captured_at.replace(microsecond=captured_at.microsecond // 1000 * 1000),
        offset_sum=sum(offsets) if offsets else None,
        changelogs=len(offsets),
    )

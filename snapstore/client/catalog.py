"""The verbs that need nothing but the catalog: list, find, show, pin, unpin, delete."""

import builtins
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from snapstore.client.moments import run_id
from snapstore.config import Config
from snapstore.errors import RefusedError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.reference import parse_reference
from snapstore.model.snapshot import Manifest, Snapshot
from snapstore.ports import Clock
from snapstore.repository import Listing, Repository


class ShownSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot with its files and whether it is pinned."""

    snapshot: Snapshot
    manifest: Manifest
    pinned: bool


class CatalogVerbs:
    """Verbs on the snapshots of an open repository."""

    def __init__(self, config: Config, repository: Repository, clock: Clock) -> None:
        self.config = config
        self.repository = repository
        self.clock = clock

    def list(
        self,
        *,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        captured_within: timedelta | None = None,
        latest: int | None = None,
    ) -> Listing:
        """List snapshots by application, task and store, the newest of each store first.

        ``latest`` keeps so many of each store. No object is read.
        """
        catalog = self.repository.catalog
        listing = (
            catalog.list_all() if application is None else (catalog.list_application(application))
        )
        kept = [
            item
            for item in listing.snapshots
            if (task is None or item.store.task == task)
            and (store is None or item.store.store == store)
            and (captured_within is None or item.captured_at >= self.clock() - captured_within)
        ]
        if latest is not None:
            kept = newest_of_each(kept, latest)
        return Listing(snapshots=tuple(kept), foreign=listing.foreign, stored_at=listing.stored_at)

    def locate(self, ref: str) -> ListedSnapshot:
        """Return what the catalog lists for a reference.

        Raises SnapshotNotFoundError, AmbiguousRefError, or ConfigError for a text that is none.
        """
        return self.repository.catalog.find(parse_reference(ref))

    def find(self, ref: str) -> Snapshot:
        """Return the snapshot that a reference means; raises as ``locate``."""
        return self.load(self.locate(ref))

    def load(self, listed: ListedSnapshot) -> Snapshot:
        """Read the catalog entry of a listed snapshot."""
        return self.repository.catalog.load(listed)

    def show(self, ref: str) -> ShownSnapshot:
        """Return a snapshot with its files; raises as ``locate``, or IntegrityError."""
        snapshot = self.find(ref)
        return ShownSnapshot(
            snapshot=snapshot,
            manifest=self.repository.manifests.load(snapshot.id),
            pinned=snapshot.id in self.pinned(),
        )

    def pinned(self) -> frozenset[str]:
        """Return the ids of the snapshots that retention must keep."""
        return self.repository.pins.all()

    def pin(self, refs: Iterable[str], *, reason: str = "") -> tuple[ListedSnapshot, ...]:
        """Keep snapshots regardless of retention; every reference is looked up first."""
        found = self._located(refs)
        for listed in found:
            self.repository.pins.add(listed.id, pinned_at=self.clock(), reason=reason)
        return found

    def unpin(self, refs: Iterable[str]) -> tuple[ListedSnapshot, ...]:
        """Leave snapshots to retention again; one that is not pinned is no error."""
        found = self._located(refs)
        for listed in found:
            self.repository.pins.remove(listed.id)
        return found

    def delete(self, refs: Iterable[str], *, dry_run: bool = False) -> tuple[ListedSnapshot, ...]:
        """Take snapshots out of the catalog and return them; their bytes go with a later sweep.

        Every reference is looked up first. Raises RefusedError, and deletes nothing, when one of
        them is pinned.
        """
        found = self._located(refs)
        pinned = self.pinned()
        kept = [listed for listed in found if listed.id in pinned]
        if kept:
            raise RefusedError(
                f"{kept[0].id[:12]} of {kept[0].store} is pinned",
                hint=f"unpin it first: snapstore unpin {kept[0].id[:12]}",
                pinned=[listed.id for listed in kept],
            )
        if not dry_run:
            now = self.clock()
            self.repository.withdraw(found, run=run_id(now), now=now)
        return found

    def _located(self, refs: Iterable[str]) -> tuple[ListedSnapshot, ...]:
        found = {listed.id: listed for listed in [self.locate(ref) for ref in refs]}
        return tuple(found.values())


def newest_of_each(
    listed: builtins.list[ListedSnapshot], latest: int
) -> builtins.list[ListedSnapshot]:
    seen: dict[object, int] = {}
    kept = []
    for item in listed:
        seen[item.store] = seen.get(item.store, 0) + 1
        if seen[item.store] <= latest:
            kept.append(item)
    return kept

"""Find stores, and say of each what a snapshot would hold."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from snapstore.errors import CaptureError, PluginError, SnapstoreError, StoreChangedError
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import StoreStatus
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.unread import Unread
from snapstore.operations.guarantee import status_of
from snapstore.operations.hold import held_offsets, held_store, retrying
from snapstore.operations.nearby import pointing, stores_near
from snapstore.operations.stopping import Stop, in_parallel
from snapstore.ports import Clock, Layout, StoreBackend

_ATTEMPTS = 3
_PARALLEL = 4


class DiscoveredStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store as it was found. ``problem`` says why no snapshot could be taken of it now.

    ``running`` and ``size_bytes`` are None where they could not be found out. ``remarks`` are
    sentences on what the offsets show. ``status`` is how the databases mark themselves.
    """

    location: StoreLocation
    running: bool | None = None
    size_bytes: int | None = None
    positions: tuple[ChangelogPosition, ...] = ()
    remarks: tuple[str, ...] = ()
    problem: SnapstoreError | None = None
    status: StoreStatus | None = None

    @property
    def state(self) -> Literal["running", "killed", "closed", "stopped"] | None:
        """``killed``: nobody holds it, and it was not closed; ``stopped``: its files do not say."""
        if self.running is None or self.running:
            return "running" if self.running else None
        marks: dict[StoreStatus, Literal["killed", "closed"]] = {
            "open": "killed",
            "closed": "closed",
        }
        return "stopped" if self.status is None else marks.get(self.status, "stopped")


class DiscoverReport(msgspec.Struct, frozen=True, kw_only=True):
    """All stores by application, task and name. ``notes`` are sentences on what was skipped.

    ``unread`` are there and could not be looked at.
    """

    stores: tuple[DiscoveredStore, ...]
    notes: tuple[str, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def missed(self) -> Mapping[StoreId, SnapstoreError]:
        """Everything that could not be read, with the reason."""
        problems = {
            store.location.store: store.problem
            for store in self.stores
            if isinstance(store.problem, CaptureError)
        }
        return {**{each.store: each.error for each in self.unread}, **problems}


def discover(
    state_dir: Path,
    application: str | None,
    *,
    layout: Layout,
    backends: Mapping[str, StoreBackend],
    clock: Clock,
) -> DiscoverReport:
    """Look at every store below ``state_dir``; nothing is written there.

    What is wrong with one store is told with it and stops nothing else.
    """
    with pointing(state_dir, layout, application):
        found = layout.discover(state_dir, application)
    locations = sorted(found.locations, key=lambda location: location.store.order)
    stores = in_parallel(
        lambda location: _look_at(location, layout, backends, clock), locations, parallel=_PARALLEL
    )
    notes = found.notes
    if not (locations or found.unread):
        near = stores_near(state_dir, layout, application)
        notes = notes if near is None else (*notes, f"there are stores in {near}: name that folder")
    return DiscoverReport(stores=tuple(stores), notes=notes, unread=found.unread)


def backend_of(location: StoreLocation, backends: Mapping[str, StoreBackend]) -> StoreBackend:
    """Return the backend that a location asks for; raises PluginError when there is none."""
    try:
        return backends[location.backend]
    except KeyError as error:
        raise PluginError(
            f"{location.store} needs the backend {location.backend!r}, which is not there",
            backend=location.backend,
        ) from error


def _look_at(
    location: StoreLocation, layout: Layout, backends: Mapping[str, StoreBackend], clock: Clock
) -> DiscoveredStore:
    def attempt(_: int) -> DiscoveredStore:
        with held_store(location, layout, backend_of(location, backends), clock) as held:
            size_bytes = sum(file.size for file in held.capture.files)
            seen = DiscoveredStore(location=location, running=held.running, size_bytes=size_bytes)
            try:
                status = status_of(layout, held.capture.view)
                seen = msgspec.structs.replace(seen, status=status)
                offsets = held_offsets(location, layout, held)
            except SnapstoreError as problem:
                return msgspec.structs.replace(seen, problem=problem)
            return msgspec.structs.replace(
                seen, positions=offsets.positions, remarks=offsets.remarks
            )

    try:
        return retrying(attempt, attempts=_ATTEMPTS, again=(StoreChangedError,), sleep=Stop().sleep)
    except SnapstoreError as problem:
        return DiscoveredStore(location=location, problem=problem)

"""Choose the stores of one snapshot run."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from snapstore.errors import ConfigError, StoreNotFoundError
from snapstore.model.store import StoreLocation
from snapstore.model.strict import nearest_hint
from snapstore.ports import Discovery


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Names to choose by; an empty tuple means all. Naming one twice means it once."""

    applications: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()


class SnapshotPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The stores that a run takes, each once, in order; ``notes`` say what was not looked at."""

    locations: tuple[StoreLocation, ...]
    notes: tuple[str, ...] = ()


def plan_snapshot(discovery: Discovery, selection: Selection) -> SnapshotPlan:
    """Return what a run with that selection would take.

    Raises StoreNotFoundError when a name fits nothing or nothing is left, and ConfigError when one
    store was found in two places.
    """
    chosen = list(discovery.locations)
    for kind, names, name_of in _criteria(selection):
        chosen = _chosen(chosen, kind, names, name_of)
    by_store = {location.store: location for location in reversed(chosen)}
    for location in chosen:
        before = by_store[location.store]
        if before.path != location.path:
            raise ConfigError(
                f"{location.store} was found twice: {before.path} and {location.path}",
                hint="give the state directory of one instance",
            )
    if not by_store:
        raise StoreNotFoundError(
            "no store was found", hint="check the state directory and the layout"
        )
    return SnapshotPlan(
        locations=tuple(sorted(by_store.values(), key=lambda location: location.store.order)),
        notes=discovery.notes,
    )


def _criteria(
    selection: Selection,
) -> Iterable[tuple[str, tuple[str, ...], Callable[[StoreLocation], str]]]:
    yield "application", selection.applications, lambda location: location.store.application
    yield "task", selection.tasks, lambda location: location.store.task
    yield "store", selection.stores, lambda location: location.store.store


def _chosen(
    locations: Sequence[StoreLocation],
    kind: str,
    names: tuple[str, ...],
    name_of: Callable[[StoreLocation], str],
) -> list[StoreLocation]:
    if not names:
        return list(locations)
    known = {name_of(location) for location in locations}
    for name in names:
        if name not in known:
            raise StoreNotFoundError(
                f"no {kind} called {name!r} was found", hint=nearest_hint(name, known)
            )
    return [location for location in locations if name_of(location) in names]

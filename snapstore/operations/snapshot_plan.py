"""Choose the stores of one snapshot run."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from snapstore.errors import ConfigError, StoreNotFoundError
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.model.strict import nearest_hint
from snapstore.model.unread import Unread
from snapstore.ports import Discovery


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Names to choose by; an empty tuple means all. Naming one twice means it once."""

    applications: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()


class SnapshotPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The stores that a run takes, each once, in order; ``notes`` say what was not looked at.

    ``unread`` belong to it, and could not be looked at.
    """

    locations: tuple[StoreLocation, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[Unread, ...] = ()


def plan_snapshot(discovery: Discovery, selection: Selection) -> SnapshotPlan:
    """Return what a run with that selection would take.

    Raises StoreNotFoundError when a name fits nothing or nothing is left, and ConfigError when one
    store was found in two places.
    """
    chosen = list(discovery.locations)
    unread = discovery.unread
    for kind, names, name_of in _criteria(selection):
        _require_names(kind, names, map(name_of, _stores(chosen, unread)))
        chosen = [each for each in chosen if not names or name_of(each.store) in names]
        unread = tuple(each for each in unread if not names or name_of(each.store) in ("", *names))
    by_store = {location.store: location for location in reversed(chosen)}
    for location in chosen:
        before = by_store[location.store]
        if before.path != location.path:
            raise ConfigError(
                f"{location.store} was found twice: {before.path} and {location.path}",
                hint="give the state directory of one instance",
            )
    if not by_store and not unread:
        raise StoreNotFoundError(
            "no store was found", hint="check the state directory and the layout"
        )
    return SnapshotPlan(
        locations=tuple(sorted(by_store.values(), key=lambda location: location.store.order)),
        notes=discovery.notes,
        unread=unread,
    )


def _criteria(
    selection: Selection,
) -> Iterable[tuple[str, tuple[str, ...], Callable[[StoreId], str]]]:
    yield "application", selection.applications, lambda store: store.application
    yield "task", selection.tasks, lambda store: store.task
    yield "store", selection.stores, lambda store: store.store


def _stores(locations: Sequence[StoreLocation], unread: Sequence[Unread]) -> list[StoreId]:
    return [*(each.store for each in locations), *(each.store for each in unread)]


def _require_names(kind: str, names: tuple[str, ...], found: Iterable[str]) -> None:
    """Raise StoreNotFoundError for a name that fits nothing.

    An empty name among ``found`` stands for what could not be read: any may be in there.
    """
    known = set(found)
    for name in names:
        if name not in known and "" not in known:
            raise StoreNotFoundError(
                f"no {kind} called {name!r} was found", hint=nearest_hint(name, known)
            )

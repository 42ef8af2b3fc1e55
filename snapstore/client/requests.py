"""Turn what somebody names into the stores that a restore is asked for."""

from collections.abc import Iterable

from snapstore.errors import SnapshotNotFoundError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.reference import IdPrefix, parse_reference
from snapstore.operations.restore_choice import Request
from snapstore.repository import Catalog


def requests_for_refs(catalog: Catalog, refs: Iterable[str], *, missing_ok: bool) -> list[Request]:
    """Return one request for each store that is named.

    An id means that snapshot and no other; a name means its newest usable one, not beyond
    ``@OFFSET`` or ``@TIME``. Raises SnapshotNotFoundError unless ``missing_ok``, AmbiguousRefError.
    """
    requests: dict[StoreId, Request] = {}
    for text in refs:
        reference = parse_reference(text)
        try:
            found = catalog.find(reference)
        except SnapshotNotFoundError:
            if missing_ok:
                continue
            raise
        if isinstance(reference.subject, IdPrefix):
            requests[found.store] = Request(candidates=(found,), latest=False)
            continue
        candidates = tuple(
            item
            for item in catalog.list_store(found.store).snapshots
            if item.age_order <= found.age_order
            and (reference.time is None or item.captured_at <= reference.time)
        )
        requests[found.store] = Request(candidates=candidates, latest=True)
    return list(requests.values())


def requests_for_stores(listed: Iterable[ListedSnapshot]) -> list[Request]:
    """Ask for the newest usable snapshot of every store; ``listed`` has the newest first."""
    by_store: dict[StoreId, list[ListedSnapshot]] = {}
    for item in listed:
        by_store.setdefault(item.store, []).append(item)
    return [Request(candidates=tuple(items), latest=True) for items in by_store.values()]

"""How stores are shown that were found on disk."""

from collections.abc import Sequence
from typing import Any

from snapstore.cli.sentences import complaints, told
from snapstore.cli.text import Column, offset, table
from snapstore.errors import SnapstoreError
from snapstore.model.units import format_size
from snapstore.operations.discover import DiscoveredStore


def error_document(error: SnapstoreError) -> dict[str, Any]:
    """Return an error that is part of an answer."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "facts": error.facts,
    }


def discovered_document(store: DiscoveredStore) -> dict[str, Any]:
    """Return what is known of a store on disk."""
    location = store.location
    return {
        "application": location.store.application,
        "task": location.store.task,
        "store": location.store.store,
        "path": location.path,
        "backend": location.backend,
        "store_type": location.store_type,
        "generation": location.generation,
        "running": store.running,
        "size_bytes": store.size_bytes,
        "positions": [
            {
                "topic": position.changelog.topic,
                "partition": position.changelog.partition,
                "applied_offset": position.applied_offset,
            }
            for position in store.positions
        ],
        "remarks": store.remarks,
        "problem": None if store.problem is None else error_document(store.problem),
    }


def discovered_table(stores: Sequence[DiscoveredStore]) -> list[str]:
    """Return the table of stores found on disk, and below it what is wrong or remarkable."""
    columns = (
        Column("application"),
        Column("task"),
        Column("store"),
        Column("type"),
        Column("size", right=True),
        Column("offset", right=True),
        Column("changelog"),
        Column("state"),
    )
    rows = [
        (
            store.location.store.application,
            store.location.store.task,
            store.location.store.store,
            store.location.store_type,
            "" if store.size_bytes is None else format_size(store.size_bytes),
            offset(store.positions[0].applied_offset if len(store.positions) == 1 else None),
            ", ".join(str(position.changelog) for position in store.positions),
            _state(store),
        )
        for store in stores
    ]
    return [
        *table(columns, rows),
        *told((each.location.store, remark) for each in stores for remark in each.remarks),
        *complaints(
            (each.location.store, each.problem) for each in stores if each.problem is not None
        ),
    ]


def reason(error: SnapstoreError) -> str:
    """Return an error in the two or three words that fit a table."""
    return error.code.replace("_", " ")


def _state(store: DiscoveredStore) -> str:
    if store.problem is not None:
        return reason(store.problem)
    return "" if store.running is None else "running" if store.running else "closed"

"""How stores are shown that were found on disk."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from snapstore.cli.sentences import complaints, told
from snapstore.cli.text import Column, count, offset, table
from snapstore.errors import PartialFailureError, RefusedError, SnapstoreError
from snapstore.model.identity import StoreId
from snapstore.model.units import format_size
from snapstore.model.unread import Unread

if TYPE_CHECKING:
    from snapstore.operations.discover import DiscoveredStore

UNSEEN = "could not look"

_NAMES = re.compile(r" ?\([^()]*\)")
_NUMBERS = re.compile(r"\d+ of [\d,]+ databases?")


def error_document(error: SnapstoreError) -> dict[str, Any]:
    """Return an error that is part of an answer."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "facts": error.facts,
    }


def discovered_document(store: "DiscoveredStore") -> dict[str, Any]:
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
        "state": store.state,
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


def unread_document(unread: Unread) -> dict[str, Any]:
    """Return the same of one that could not be looked at; names that nobody knows are null."""
    return {
        "application": unread.store.application,
        "task": unread.store.task or None,
        "store": unread.store.store or None,
        "path": unread.path,
        "backend": None,
        "store_type": None,
        "generation": None,
        "running": None,
        "state": None,
        "size_bytes": None,
        "positions": [],
        "remarks": (),
        "problem": error_document(unread.error),
    }


def discovered_table(
    stores: Sequence["DiscoveredStore"], unread: Sequence[Unread] = ()
) -> list[str]:
    """Return the table of stores found on disk, and below it what is wrong or remarkable."""
    columns = (
        Column("application", cut=True),
        Column("task"),
        Column("store", cut=True),
        Column("type", spare=2),
        Column("size", right=True, spare=1),
        Column("offset", right=True),
        Column("changelog", spare=3),
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
    rows += [
        (each.store.application, each.store.task, each.store.store, "", "", "", "", UNSEEN)
        for each in unread
    ]
    return [
        *table(columns, rows),
        *told((each.location.store, remark) for each in stores for remark in each.remarks),
        *complaints(
            (
                *(
                    (each.location.store, each.problem)
                    for each in stores
                    if each.problem is not None
                ),
                *((each.store, each.error) for each in unread),
            )
        ),
    ]


def reason(error: SnapstoreError) -> str:
    """Return an error in the two or three words that fit a table."""
    return error.code.replace("_", " ")


def missed_error(missed: Mapping[StoreId, SnapstoreError], count_of_all: int) -> SnapstoreError:
    """Return the error of a look at stores of which some could not be read, or none."""
    errors = [*missed.values()]
    if len(errors) == count_of_all:
        return errors[0]
    return PartialFailureError(
        f"could not look at {len(errors)} of {count(count_of_all, 'store')}",
        hint="the list says of each why; the others are right",
        failed=[str(store) for store in missed],
    )


def nothing_taken(failed: Sequence[tuple[StoreId, SnapstoreError]]) -> SnapstoreError:
    """Return one error for stores of which none could be taken, with every reason that there is.

    It is of the kind of the first.
    """
    first = failed[0][1]
    if len(failed) == 1:
        return first
    reasons = Counter(_without_names(store, error) for store, error in failed)
    why = "; ".join(f"{count(times, 'store')}: {words}" for words, times in reasons.items())
    refused = all(isinstance(error, RefusedError) for _, error in failed)
    hints = {error.hint for _, error in failed}
    return type(first)(
        f"{'refused' if refused else 'no snapshot could be taken'}: {why}",
        hint=first.hint if len(hints) == 1 else "the report says of each store what can be done",
        failed=[str(store) for store, _ in failed],
    )


def _without_names(store: StoreId, error: SnapstoreError) -> str:
    """Return a reason as it may hold for other stores, too."""
    words = error.message.replace(str(store), "each")
    return _NUMBERS.sub("databases", _NAMES.sub("", words))


def _state(store: "DiscoveredStore") -> str:
    if store.problem is not None:
        return reason(store.problem)
    return store.state or ""

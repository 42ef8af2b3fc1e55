"""Compare what two copies of one store hold, pair by pair."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Literal

import msgspec

Pair = tuple[bytes, bytes]


class ContentRules(msgspec.Struct, frozen=True, kw_only=True):
    """What of a store is content, and what of it a rebuild must have too.

    ``left_out`` are column families of bookkeeping. ``older`` are those that hold entries from
    before an upgrade of the store's format: a rebuild has them in the new one. ``latest_prefix``:
    in a versioned store the key of a latest value begins so, and all else is history.
    """

    left_out: frozenset[str] = frozenset()
    older: frozenset[str] = frozenset()
    latest_prefix: bytes | None = None


class Side(Enum):
    """Who has another pair, or has one alone."""

    RESTORED = "only_restored"
    REBUILT = "only_rebuilt"
    BOTH = "values_differ"


class Unequal(msgspec.Struct, frozen=True):
    """A key whose value is not the same in both; None where it is not there."""

    key: bytes
    restored: bytes | None
    rebuilt: bytes | None

    @property
    def side(self) -> Side:
        if self.rebuilt is None:
            return Side.RESTORED
        return Side.REBUILT if self.restored is None else Side.BOTH


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One key that differs, for people: bytes in hex, values cut after ``SHOWN_BYTES``."""

    database: str
    family: str
    key: str
    kind: Literal["only_restored", "only_rebuilt", "values_differ"]
    restored: str | None
    rebuilt: str | None


SHOWN_BYTES = 64


def unequal(restored: Iterable[Pair], rebuilt: Iterable[Pair]) -> Iterator[Unequal]:
    """Yield the keys that differ between two lists of pairs, both of them in key order."""
    left, right = iter(restored), iter(rebuilt)
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield Unequal(one[0], one[1], None)
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield Unequal(other[0], None, other[1])
            other = next(right, None)
        else:
            if one[1] != other[1]:
                yield Unequal(one[0], one[1], other[1])
            one, other = next(left, None), next(right, None)


def difference(database: str, family: str, found: Unequal) -> Difference:
    """Return a difference as people are shown it."""
    return Difference(
        database=database,
        family=family,
        key=found.key.hex(),
        kind=found.side.value,
        restored=_shown(found.restored),
        rebuilt=_shown(found.rebuilt),
    )


def _shown(value: bytes | None) -> str | None:
    if value is None:
        return None
    shown = value[:SHOWN_BYTES].hex()
    return shown if len(value) <= SHOWN_BYTES else f"{shown}... ({len(value)} bytes)"

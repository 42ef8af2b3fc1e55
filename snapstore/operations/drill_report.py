"""What a drill has found."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

import msgspec

from snapstore.model.content import Difference
from snapstore.model.identity import StoreId
from snapstore.operations.restore_plan import Skipped

Outcome = Literal["equal", "partly", "skipped", "unavailable", "refused", "damaged", "differs"]

OUTCOMES: Final[tuple[Outcome, ...]] = (
    "equal",
    "partly",
    "skipped",
    "unavailable",
    "refused",
    "damaged",
    "differs",
)
"""From good to bad. ``partly``: what can be compared is equal, and something cannot be."""


class FamilyDigest(msgspec.Struct, frozen=True, kw_only=True):
    """Number and SHA-256 of the compared pairs of one column family, in key order."""

    database: str
    family: str
    restored_pairs: int
    rebuilt_pairs: int
    restored_sha256: str
    rebuilt_sha256: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two copies of one store held against each other.

    ``differences`` are the first, ``different_keys`` counts all. ``not_compared`` are sentences on
    what a rebuild need not have.
    """

    families: tuple[FamilyDigest, ...]
    differences: tuple[Difference, ...]
    different_keys: int
    not_compared: tuple[str, ...]

    @property
    def pairs(self) -> int:
        return sum(family.restored_pairs for family in self.families)


class DrilledPartition(msgspec.Struct, frozen=True, kw_only=True):
    """One changelog partition: what was read after the restore, and for the rebuild.

    Both end before ``end_offset``.
    """

    changelog: str
    applied_offset: int
    end_offset: int
    replayed_records: int
    rebuild_start: int
    rebuilt_records: int


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long it took to have the store back, from the snapshot and from the changelog alone."""

    restored_bytes: int
    restore_seconds: float
    replay_seconds: float
    rebuild_seconds: float

    @property
    def recovery_seconds(self) -> float:
        """The recovery time (RTO) with the snapshot."""
        return self.restore_seconds + self.replay_seconds


class DrilledStore(msgspec.Struct, frozen=True, kw_only=True):
    """One store that was restored and held against a rebuild; ``reason`` is a sentence.

    ``behind_records`` and ``age_seconds`` are what would be lost with the changelog (the recovery
    point, RPO); while it is there nothing is. ``passed_over`` are newer snapshots that could not
    be used.
    """

    store: StoreId
    outcome: Outcome
    reason: str | None = None
    code: str | None = None
    snapshot_id: str | None = None
    captured_at: datetime | None = None
    age_seconds: float | None = None
    behind_records: int | None = None
    passed_over: tuple[Skipped, ...] = ()
    partitions: tuple[DrilledPartition, ...] = ()
    timing: Timing | None = None
    comparison: Comparison | None = None
    seconds: float = 0.0


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    """All stores of a drill; ``candidates`` is how many the sample was drawn from."""

    stores: tuple[DrilledStore, ...]
    candidates: int
    seed: int

    @property
    def worst(self) -> Outcome:
        return worst_outcome(store.outcome for store in self.stores)

    def of(self, *outcomes: Outcome) -> tuple[DrilledStore, ...]:
        return tuple(store for store in self.stores if store.outcome in outcomes)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of several; ``equal`` for none."""
    return max(outcomes, key=OUTCOMES.index, default="equal")

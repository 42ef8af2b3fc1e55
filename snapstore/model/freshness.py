"""How fresh the snapshots of a store are, what a restore would take, and how long it stays safe."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.lifetime import Limit
from snapstore.model.listing import ListedSnapshot
from snapstore.model.units import count, format_duration

Standing = Literal["usable", "older", "unchecked", "unknown", "none", "unusable"]

STANDINGS: Final[tuple[Standing, ...]] = (
    "usable",
    "older",
    "unchecked",
    "unknown",
    "none",
    "unusable",
)
"""From good to bad.

``older``: newer ones were passed over. ``unchecked``: no changelog was there to ask. ``unknown``:
it did not answer. ``none``: there is no snapshot. ``unusable``: none of them may be used.
"""


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """How fast a restore goes; ``origin`` says how that is known."""

    download_bytes_per_second: float
    replay_records_per_second: float
    origin: str


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """What is too old or too far behind; None: anything goes."""

    max_age: timedelta | None = None
    max_lag_records: int | None = None


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """A newer snapshot that cannot be used: the code of the error and its sentence."""

    snapshot_id: str
    code: str
    reason: str


class PartitionFreshness(msgspec.Struct, frozen=True, kw_only=True):
    """One changelog partition of the snapshot in question.

    ``lag_records`` counts offsets, so no fewer than records. ``lag_bytes`` is an estimate of the
    keys, values and headers that they hold. ``limit`` is what ends the use of the snapshot; None
    where nothing does. None of the rest where the changelog was not looked at.
    """

    changelog: ChangelogPartition
    applied_offset: int
    log_start: int | None = None
    log_end: int | None = None
    lag_records: int | None = None
    lag_bytes: int | None = None
    limit: Limit | None = None


class StoreFreshness(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the snapshots of one store.

    ``used`` is the snapshot that a restore would take: the newest usable one, or, where the
    changelog was not asked, the newest that is whole. ``reason`` says why there is none, or what is
    not known. ``size_bytes`` is of all its files. ``safe_trim_offsets``: records before these
    offsets are in every usable snapshot that is kept; None where that was not looked for.
    ``advice`` are sentences, ``over`` names the thresholds that are crossed.
    """

    store: StoreId
    standing: Standing
    snapshots: int
    newest: ListedSnapshot | None = None
    used: ListedSnapshot | None = None
    age: timedelta | None = None
    size_bytes: int | None = None
    partitions: tuple[PartitionFreshness, ...] = ()
    lag_records: int | None = None
    lag_bytes: int | None = None
    restore_seconds: float | None = None
    reason: str | None = None
    code: str | None = None
    passed_over: tuple[PassedOver, ...] = ()
    safe_trim_offsets: Mapping[ChangelogPartition, int] | None = None
    advice: tuple[str, ...] = ()
    over: tuple[str, ...] = ()

    @property
    def usable_until(self) -> datetime | None:
        """When the first of its changelogs may have lost something; None: nothing foreseen."""
        limits = [each.limit for each in self.partitions if each.limit is not None]
        return min((each.until for each in limits), default=None)


class FreshnessReport(msgspec.Struct, frozen=True, kw_only=True):
    """Every store, and how restore times were estimated (None: they were not)."""

    stores: tuple[StoreFreshness, ...]
    rates: Rates | None
    notes: tuple[str, ...] = ()

    @property
    def over(self) -> tuple[StoreFreshness, ...]:
        """The stores that somebody must look at."""
        return tuple(each for each in self.stores if each.over)

    @property
    def unknown(self) -> tuple[StoreFreshness, ...]:
        """The stores of which the changelog did not answer."""
        return tuple(each for each in self.stores if each.standing == "unknown")


def restore_seconds(size_bytes: int, lag_records: int | None, rates: Rates | None) -> float | None:
    """Return how long it takes to fetch a store whole and to replay what follows."""
    if rates is None or lag_records is None:
        return None
    fetching = size_bytes / rates.download_bytes_per_second
    return fetching + lag_records / rates.replay_records_per_second


def crossed(
    standing: Standing, age: timedelta | None, lag_records: int | None, thresholds: Thresholds
) -> tuple[str, ...]:
    """Return the thresholds that a store is over, as sentences; no usable snapshot is always one.

    A lag that is not known crosses nothing.
    """
    if standing in ("none", "unusable"):
        return ("it has no usable snapshot",)
    found = []
    if thresholds.max_age is not None and age is not None and age > thresholds.max_age:
        limit = format_duration(thresholds.max_age.total_seconds())
        found.append(f"{format_duration(age.total_seconds())} old, more than {limit}")
    limit_records = thresholds.max_lag_records
    if limit_records is not None and lag_records is not None and lag_records > limit_records:
        found.append(f"{count(lag_records, 'record')} behind, more than {limit_records:,}")
    return tuple(found)


def worst_standing(stores: Iterable[StoreFreshness]) -> Standing:
    """Return the worst of several; ``usable`` for none."""
    return max((each.standing for each in stores), key=STANDINGS.index, default="usable")

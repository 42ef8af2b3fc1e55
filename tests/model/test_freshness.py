"""Thresholds, and the estimate of a restore."""

from datetime import timedelta

import pytest

from snapstore.model.freshness import (
    FreshnessReport,
    Rates,
    Standing,
    StoreFreshness,
    Thresholds,
    crossed,
    restore_seconds,
    worst_standing,
)
from snapstore.model.identity import StoreId

HOUR = timedelta(hours=1)
RATES = Rates(download_bytes_per_second=100, replay_records_per_second=50, origin="given")


def freshness(standing: Standing, over: tuple[str, ...] = ()) -> StoreFreshness:
    return StoreFreshness(
        store=StoreId("app", "0_0", standing), standing=standing, snapshots=1, over=over
    )


def test_a_restore_takes_the_fetching_and_the_replay() -> None:
    assert restore_seconds(1000, 500, RATES) == 20


def test_without_a_rate_or_a_lag_a_restore_is_not_estimated() -> None:
    assert restore_seconds(1000, 500, None) is None
    assert restore_seconds(1000, None, RATES) is None


@pytest.mark.parametrize(
    ("age", "lag", "told"),
    [
        (HOUR, 10, ()),
        (2 * HOUR, 10, ("2 h 00 min old, more than 1 h 00 min",)),
        (HOUR, 11, ("11 records behind, more than 10",)),
        (HOUR, None, ()),
    ],
)
def test_a_threshold_is_crossed_only_beyond_it(
    age: timedelta, lag: int | None, told: tuple[str, ...]
) -> None:
    limits = Thresholds(max_age=HOUR, max_lag_records=10)
    assert crossed("usable", age, lag, limits) == told


@pytest.mark.parametrize("standing", ["none", "unusable"])
def test_a_store_without_a_usable_snapshot_is_over_any_threshold(standing: Standing) -> None:
    assert crossed(standing, None, None, Thresholds()) == ("it has no usable snapshot",)


def test_no_threshold_is_never_crossed() -> None:
    assert crossed("older", 1000 * HOUR, 10**12, Thresholds()) == ()


def test_a_report_names_those_to_look_at_and_those_that_did_not_answer() -> None:
    usable, unknown = freshness("usable"), freshness("unknown")
    none = freshness("none", ("it has no usable snapshot",))
    report = FreshnessReport(stores=(usable, unknown, none), rates=None)
    assert (report.over, report.unknown) == ((none,), (unknown,))
    assert worst_standing(report.stores) == "none"
    assert worst_standing(()) == "usable"

"""How long a log keeps what follows a snapshot, and what is said about it."""

from datetime import UTC, datetime, timedelta

import pytest

from snapstore.model.lifetime import (
    Limit,
    advise,
    advise_on_horizon,
    advise_on_truncation,
    limit_of,
    usual_interval,
)
from tests.model.fences import CAPTURED, DAY_MS, NOW, fence, plan, state

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
MINUTES_5 = timedelta(minutes=5)


def test_deletions_end_the_use_of_a_snapshot_of_a_compacted_topic() -> None:
    seen = state()
    limit = limit_of(plan(fence(), seen), seen, None)
    assert limit == Limit(until=CAPTURED - HOUR + DAY - MINUTES_5, cause="delete.retention.ms")


def test_retention_counts_from_the_first_record_after_the_snapshot() -> None:
    seen = state(cleanup_policy="delete", retention_ms=2 * DAY_MS)
    first_ms = int((NOW - 3 * HOUR).timestamp() * 1000)
    limit = limit_of(plan(fence(cleanup_policy="delete"), seen), seen, first_ms)
    assert limit == Limit(until=NOW - 3 * HOUR + 2 * DAY, cause="retention.ms")


def test_a_snapshot_that_nothing_follows_is_kept_for_the_whole_retention() -> None:
    seen = state(cleanup_policy="delete", retention_ms=DAY_MS, log_end=110)
    resumed = plan(fence(cleanup_policy="delete"), seen, applied_offset=109)
    limit = limit_of(resumed, seen, None)
    assert limit == Limit(until=NOW + DAY, cause="retention.ms")


def test_the_earlier_of_both_counts() -> None:
    seen = state(cleanup_policy="compact,delete", retention_ms=DAY_MS)
    first_ms = int((NOW - 20 * HOUR).timestamp() * 1000)
    limit = limit_of(plan(fence(cleanup_policy="compact,delete"), seen), seen, first_ms)
    assert limit == Limit(until=NOW + 4 * HOUR, cause="retention.ms")


@pytest.mark.parametrize("timestamp_ms", [None, -1, 2**63 - 1])
def test_a_record_without_a_time_or_with_an_absurd_one_foretells_nothing(
    timestamp_ms: int | None,
) -> None:
    seen = state(cleanup_policy="delete", retention_ms=DAY_MS)
    assert limit_of(plan(fence(cleanup_policy="delete"), seen), seen, timestamp_ms) is None


@pytest.mark.parametrize("retention_ms", [None, DAY_MS])
def test_nothing_is_foreseen_of_a_log_that_drops_nothing(retention_ms: int | None) -> None:
    policy = "delete" if retention_ms is None else ""
    seen = state(cleanup_policy=policy, retention_ms=retention_ms)
    assert limit_of(plan(fence(cleanup_policy="delete"), seen), seen, 1) is None


def test_the_usual_interval_is_the_longest_pause_of_late() -> None:
    times = [NOW - hours * HOUR for hours in (1, 2, 5, 6)]
    assert usual_interval(times) == 3 * HOUR
    assert usual_interval([NOW - 1000 * HOUR, *(NOW - n * HOUR for n in range(10))]) == HOUR
    assert usual_interval([NOW]) is None


def told(left: timedelta, interval: timedelta | None) -> str:
    limit = Limit(until=NOW + left, cause="delete.retention.ms")
    return " / ".join(advise([(limit, state())], now=NOW, interval=interval, restore_seconds=600))


def test_nothing_is_said_while_the_next_snapshot_comes_in_time() -> None:
    assert told(3 * HOUR, 2 * HOUR) == ""
    assert told(3 * HOUR, None) == ""


def test_snapshots_that_come_too_seldom_are_told_what_would_make_them_safe() -> None:
    assert told(3 * HOUR, 20 * HOUR) == (
        "app-counts-changelog:3 may drop what the snapshot needs in 3 h 00 min, and snapshots come"
        " every 20 h 00 min: take snapshots more often than every 23 h 55 min, or raise"
        " delete.retention.ms of app-counts-changelog to 144900000 or more"
    )
    needed = 40 * HOUR + timedelta(minutes=10) + MINUTES_5
    assert needed == timedelta(milliseconds=144_900_000)


def test_what_may_be_gone_already_is_told_as_that() -> None:
    assert told(-HOUR, 2 * HOUR).startswith(
        "app-counts-changelog:3 may have dropped records since 2026-03-01T13:00:00Z"
    )


def test_the_horizon_is_explained_by_whether_the_end_of_the_log_was_ever_seen() -> None:
    seen = state(delete_retention_ms=3_600_000)
    dated = advise_on_horizon(seen, dated=True, interval=10 * HOUR)
    assert dated == (
        "take snapshots more often than every 55 min 00 s, or raise delete.retention.ms of"
        " app-counts-changelog to 72300000 or more"
    )
    undated = advise_on_horizon(seen, dated=False, interval=None)
    assert "none of its snapshots is known to have reached the end of the log" in undated
    assert undated.endswith("raise delete.retention.ms of app-counts-changelog")


def test_a_log_that_keeps_deletions_shorter_than_the_margin_can_only_be_configured() -> None:
    seen = state(delete_retention_ms=1000)
    assert advise_on_horizon(seen, dated=True, interval=None) == (
        "raise delete.retention.ms of app-counts-changelog"
    )


def test_a_truncated_log_is_explained_by_its_retention_or_by_somebody() -> None:
    by_age = state(cleanup_policy="compact,delete", retention_ms=DAY_MS)
    assert "raise retention.ms of app-counts-changelog" in advise_on_truncation(by_age, None)
    assert "safe trim offset" in advise_on_truncation(state(), None)


def test_a_retention_beyond_all_times_is_no_error() -> None:
    seen = state(cleanup_policy="delete", retention_ms=2**62)
    limit = limit_of(plan(fence(cleanup_policy="delete"), seen), seen, 0)
    assert limit is not None
    assert limit.until > datetime(2060, 1, 1, tzinfo=UTC)

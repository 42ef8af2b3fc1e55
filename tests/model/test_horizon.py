"""Deletions that compaction may have taken away: one row is one sentence."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from snapstore.errors import TombstoneHorizonError
from snapstore.model.changelog import TailReport
from snapstore.model.horizon import Observation, behind_since, least_delete_retention_ms
from snapstore.model.resume import Overrides, confirm_tail, require_deadline
from tests.model.fences import CAPTURED, DAY_MS, LAST, MARGIN, NOW, fence, plan, state

NO_POLICY = {"cleanup_policy": "delete"}

# Deletions. T0 is an hour before the capture; 24 h of retention; 5 min of margin.
DEADLINE = CAPTURED + timedelta(hours=23) - MARGIN
JUST_BEFORE = DEADLINE - timedelta(seconds=1)

HORIZON: dict[str, tuple[datetime | None, bool, dict[str, Any]]] = {
    "before the horizon, time is the proof": (
        DEADLINE,
        False,
        {"seen": {"observed_at": JUST_BEFORE}},
    ),
    "at the horizon, only a tail without a gap is": (
        DEADLINE,
        True,
        {"seen": {"observed_at": DEADLINE}},
    ),
    "T0 not known": (None, True, {"taken": {"behind_since": None}}),
    "retention not recorded": (None, True, {"taken": {"delete_retention_ms": None}}),
    "retention was shortened since": (
        CAPTURED - MARGIN,
        True,
        {"seen": {"delete_retention_ms": DAY_MS // 24}},
    ),
    "retention was lengthened since: what was recorded counts": (
        CAPTURED - MARGIN,
        True,
        {"taken": {"delete_retention_ms": DAY_MS // 24}},
    ),
    "nothing lies behind the resume offset: T0 is now": (
        NOW + timedelta(days=1) - MARGIN,
        False,
        {
            "applied_offset": 109,
            "seen": {"log_end": 110},
            "taken": {"behind_since": None, "applied": LAST},
            "applied": LAST,
        },
    ),
    "an open transaction lies behind it: T0 is not now": (
        None,
        True,
        {
            "applied_offset": 109,
            "seen": {"log_end": 110, "high_watermark": 112},
            "taken": {"behind_since": None, "applied": LAST},
            "applied": LAST,
        },
    ),
    "never compacted": (None, False, {"taken": NO_POLICY, "seen": NO_POLICY}),
    "compacted since": (DEADLINE, False, {"taken": NO_POLICY}),
    "compacted at the capture, not now": (DEADLINE, False, {"seen": NO_POLICY}),
    "policy not recorded": (DEADLINE, False, {"taken": {"cleanup_policy": ""}, "seen": NO_POLICY}),
    "deleted by time as well as compacted": (
        DEADLINE,
        False,
        {"seen": {"cleanup_policy": "compact,delete"}},
    ),
    "the operator accepts missed tombstones": (
        None,
        False,
        {"taken": {"behind_since": None}, "overrides": Overrides(allow_missed_tombstones=True)},
    ),
    "no fence: not known": (
        None,
        True,
        {"taken": None, "overrides": Overrides(allow_unchecked_changelog=True)},
    ),
    "a clock that is hours before the snapshot does not tell how much time has passed": (
        None,
        True,
        {"seen": {"observed_at": CAPTURED - timedelta(hours=9)}},
    ),
    "nor does one that is years before it": (
        None,
        True,
        {"seen": {"observed_at": CAPTURED - timedelta(days=3000)}},
    ),
    "one that is years ahead finds the horizon passed": (
        DEADLINE,
        True,
        {"seen": {"observed_at": CAPTURED + timedelta(days=3000)}},
    ),
    "two clocks may differ by the margin": (
        DEADLINE,
        False,
        {"seen": {"observed_at": CAPTURED - MARGIN / 2}},
    ),
}


@pytest.mark.parametrize("row", HORIZON.values(), ids=HORIZON.keys())
def test_tombstone_horizon(row: tuple[datetime | None, bool, dict[str, Any]]) -> None:
    deadline, gap_free_required, case = row
    case = dict(case)
    changes = case.pop("taken", {})
    taken = None if changes is None else fence(**changes)
    made = plan(taken, state(**case.pop("seen", {})), **case)
    assert (made.deadline, made.gap_free_required) == (deadline, gap_free_required)


def test_retention_without_end_does_not_overflow() -> None:
    made = plan(fence(delete_retention_ms=2**63 - 1), state(delete_retention_ms=2**63 - 1))
    assert made.deadline is not None
    assert made.deadline > NOW + timedelta(days=36_000)


def tail(records: int, start: int = 100, stop: int = 200) -> TailReport:
    return TailReport(start=start, stop=stop, records=records)


TAILS: dict[str, tuple[bool, dict[str, Any], int, datetime]] = {
    "gaps, read in time": (True, {}, 7, JUST_BEFORE),
    "gaps, read too late": (False, {}, 7, DEADLINE),
    "no gap, read too late": (True, {}, 100, DEADLINE),
    "no gap, T0 not known": (True, {"behind_since": None}, 100, NOW),
    "gaps, T0 not known": (False, {"behind_since": None}, 99, NOW),
}


@pytest.mark.parametrize("row", TAILS.values(), ids=TAILS.keys())
def test_what_was_read_is_judged_again(row: tuple[bool, dict[str, Any], int, datetime]) -> None:
    fine, changes, records, finished_at = row
    made = plan(fence(**changes), state())
    if fine:
        confirm_tail(made, tail(records), finished_at)
        return
    with pytest.raises(TombstoneHorizonError, match="may have been compacted away") as raised:
        confirm_tail(made, tail(records), finished_at)
    assert raised.value.facts["missing"] == 100 - records
    assert "--allow-missed-tombstones" in (raised.value.hint or "")


def test_a_tail_that_was_not_read_to_its_end_is_no_proof() -> None:
    with pytest.raises(ValueError, match=r"read 100\.\.150, planned 100\.\.200"):
        confirm_tail(plan(fence(), state()), tail(50, stop=150), NOW)


def test_an_application_that_replays_by_itself_needs_the_proof_by_time() -> None:
    require_deadline(plan(fence(), state()))
    with pytest.raises(TombstoneHorizonError, match="not known since when"):
        require_deadline(plan(fence(behind_since=None), state()))
    with pytest.raises(TombstoneHorizonError, match="safe only until 2026-03-02T10:55:00"):
        require_deadline(plan(fence(), state(observed_at=DEADLINE)))


def test_t0_is_the_newest_time_at_which_nothing_lay_behind() -> None:
    hour = timedelta(hours=1)
    seen: list[Observation] = [
        fence(high_watermark=80, observed_at=CAPTURED - 3 * hour),
        fence(high_watermark=100, observed_at=CAPTURED - 2 * hour),
        fence(high_watermark=101, observed_at=CAPTURED - hour),
        fence(high_watermark=None, observed_at=CAPTURED - hour),
        state(),
    ]
    assert behind_since(100, seen) == CAPTURED - 2 * hour
    assert behind_since(200, seen) == NOW
    assert behind_since(79, seen) is None


def test_the_least_retention_since_t0_counts() -> None:
    seen: list[Observation] = [
        fence(delete_retention_ms=1, observed_at=CAPTURED - timedelta(hours=2)),
        fence(delete_retention_ms=5, observed_at=CAPTURED - timedelta(hours=1)),
        state(delete_retention_ms=9),
    ]
    assert least_delete_retention_ms(CAPTURED - timedelta(hours=1), seen) == 5
    assert least_delete_retention_ms(None, seen) == 1

"""Which snapshots stay: rows of what was taken when, and what is kept for which reason."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.retention import Candidate, Decision, RetentionPolicy, plan_retention

NOW = datetime.fromisoformat("2026-05-04T12:00:00Z")
COUNTS = StoreId("orders", "0_3", "counts")


def candidate(
    offset: int | None,
    captured_at: str | timedelta = timedelta(hours=1),
    *,
    store: StoreId = COUNTS,
    pinned: bool = False,
    damage: str | None = None,
    history: str = "",
    unsure: str | None = None,
    complete: bool = True,
) -> Candidate:
    """Return a snapshot whose id is its offset; a timedelta is its age."""
    time = (
        NOW - captured_at
        if isinstance(captured_at, timedelta)
        else datetime.fromisoformat(captured_at)
    )
    listed = ListedSnapshot(
        store=store,
        id=f"{store.task}-{offset}-{time.isoformat()}",
        captured_at=time,
        offset_sum=offset,
        changelogs=0 if offset is None else 1,
    )
    return Candidate(
        listed=listed,
        pinned=pinned,
        damage=damage,
        history=history,
        unsure=unsure,
        complete=complete,
    )


def kept(
    *candidates: Candidate, now: datetime = NOW, **policy: int | timedelta
) -> dict[object, str]:
    """Return the offsets that stay, each with its reasons."""
    return {
        decision.listed.offset_sum: "; ".join(decision.reasons)
        for decision in decide(*candidates, now=now, policy=policy)
        if decision.kept
    }


def decide(
    *candidates: Candidate, policy: Mapping[str, object], now: datetime = NOW
) -> tuple[Decision, ...]:
    return plan_retention(candidates, RetentionPolicy(**policy), now=now)  # type: ignore[arg-type]


def aged(*ages: float) -> list[Candidate]:
    """Return snapshots of these ages in hours; the youngest has the highest offset."""
    return [candidate(1000 - int(age), timedelta(hours=age)) for age in ages]


def test_the_last_ones_by_offset_stay_and_say_so() -> None:
    assert kept(*aged(1, 2, 3), keep_last=2) == {999: "last 1 of 2", 998: "last 2 of 2"}


def test_what_no_rule_keeps_goes_and_says_so() -> None:
    gone = [one for one in decide(*aged(1, 2), policy={"keep_last": 1}) if not one.kept]
    assert [(one.listed.offset_sum, one.reasons) for one in gone] == [(998, ("no rule keeps it",))]


def test_the_higher_offset_is_the_newer_one_though_the_clock_went_back_g100() -> None:
    found = kept(
        candidate(100, "2026-05-04T12:00:00Z"),
        candidate(200, "2026-05-04T11:50:00Z"),
        keep_last=1,
    )
    assert found == {
        200: "last 1 of 1",
        100: "captured last, though its offset is not the highest",
    }


def test_of_many_with_a_clock_that_went_back_only_the_last_captured_stays_beside() -> None:
    times = [candidate(100 + n, f"2026-05-04T11:{50 - n}:00Z") for n in range(5)]
    assert kept(*times, keep_last=1).keys() == {104, 100}


def test_a_topic_that_was_made_anew_has_rules_of_its_own() -> None:
    old = [candidate(9000 + n, timedelta(days=9 - n), history="topic-1") for n in range(3)]
    new = [candidate(10 + n, timedelta(hours=9 - n), history="topic-2") for n in range(3)]
    assert kept(*old, *new, keep_last=2).keys() == {9001, 9002, 11, 12}


@pytest.mark.parametrize("zone", ["Z", "+09:00", "-08:00"])
def test_days_are_those_of_utc_wherever_it_runs_g101(zone: str) -> None:
    late = candidate(1, "2026-05-01T23:30:00-05:00")
    early = candidate(2, "2026-05-03T00:30:00+02:00")
    now = datetime.fromisoformat(f"2026-05-04T12:00:00{zone}")
    assert kept(late, early, now=now, keep_daily=1) == {2: "daily 2026-05-02"}
    assert kept(late, early, now=now, keep_daily=2) == {2: "daily 2026-05-02"}, (
        "both are of one day"
    )


def test_of_each_period_the_newest_stays_and_periods_without_a_snapshot_do_not_count() -> None:
    found = kept(*aged(1, 1.5, 30, 100, 200), keep_daily=3)
    assert found == {
        999: "daily 2026-05-04",
        970: "daily 2026-05-03",
        900: "daily 2026-04-30",
    }


@pytest.mark.parametrize(
    ("rule", "times", "expected"),
    [
        (
            "keep_hourly",
            ("2026-05-04T10:59:59Z", "2026-05-04T11:00:00Z", "2026-05-04T11:30:00Z"),
            {0: "hourly 2026-05-04T10", 2: "hourly 2026-05-04T11"},
        ),
        (
            "keep_weekly",
            ("2026-04-26T23:59:00Z", "2026-04-27T00:00:00Z", "2026-05-03T23:00:00Z"),
            {0: "weekly 2026-W17", 2: "weekly 2026-W18"},
        ),
        (
            "keep_weekly",
            ("2025-12-28T12:00:00Z", "2025-12-29T12:00:00Z", "2026-01-04T12:00:00Z"),
            {0: "weekly 2025-W52", 2: "weekly 2026-W01"},
        ),
        (
            "keep_monthly",
            ("2026-02-28T23:59:00Z", "2026-03-01T00:00:00Z", "2026-03-31T12:00:00Z"),
            {0: "monthly 2026-02", 2: "monthly 2026-03"},
        ),
        (
            "keep_yearly",
            ("2024-12-31T23:59:00Z", "2025-01-01T00:00:00Z", "2025-12-31T12:00:00Z"),
            {0: "yearly 2024", 2: "yearly 2025"},
        ),
    ],
)
def test_periods_begin_where_the_calendar_says(
    rule: str, times: tuple[str, ...], expected: dict[object, str]
) -> None:
    taken = [candidate(number, time) for number, time in enumerate(times)]
    decisions = decide(*taken, policy={rule: 5})
    stays = {one.listed.offset_sum: "; ".join(one.reasons) for one in decisions if one.kept}
    assert stays == expected


def test_what_is_young_enough_stays_the_edge_included() -> None:
    found = kept(*aged(1, 24, 24.1), keep_within=timedelta(days=1))
    assert found == {999: "within 1d", 976: "within 1d"}


def test_a_capture_time_in_the_future_is_young() -> None:
    assert kept(candidate(5, timedelta(hours=-3)), keep_within=timedelta(hours=1)).keys() == {5}


def test_several_rules_add_up_and_all_are_named() -> None:
    found = kept(*aged(1, 30), keep_last=1, keep_daily=2)
    assert found == {999: "last 1 of 1; daily 2026-05-04", 970: "daily 2026-05-03"}


def test_pins_stay_and_do_not_count() -> None:
    found = kept(*aged(1, 2), candidate(1, pinned=True), keep_last=2)
    assert found.keys() == {999, 998, 1}
    assert found[1] == "pinned"


def test_the_last_usable_snapshot_stays_when_no_rule_keeps_any() -> None:
    assert kept(*aged(100, 200), keep_within=timedelta(hours=1)) == {
        900: "the last usable snapshot of its store"
    }
    assert kept(*aged(100, 200)).keys() == {900}


def test_a_damaged_snapshot_takes_no_place_and_stays_as_long_as_the_rules_would_keep_it() -> None:
    whole = aged(3, 4, 5)
    broken = [candidate(1000 - n, timedelta(hours=n), damage="blob x is missing") for n in (1, 6)]
    found = kept(*whole, *broken, keep_last=2)
    assert found == {
        999: "damaged, and counts for no rule: blob x is missing",
        997: "last 1 of 2",
        996: "last 2 of 2",
    }


def test_nothing_of_a_store_goes_when_none_of_it_is_usable() -> None:
    broken = [candidate(n, damage="manifest gone") for n in range(4)]
    assert kept(*broken, keep_last=1).keys() == {0, 1, 2, 3}


def test_a_pinned_damaged_snapshot_does_not_count_as_the_last_usable() -> None:
    found = kept(*aged(100), candidate(1000, pinned=True, damage="gone"))
    assert found.keys() == {900, 1000}


def test_each_store_is_judged_alone_whichever_host_took_its_snapshots_g46() -> None:
    other = StoreId("orders", "0_4", "counts")
    found = decide(
        *aged(1, 2, 3),
        *(candidate(n, timedelta(days=30), store=other) for n in (7, 8, 9)),
        policy={"keep_last": 2},
    )
    assert [(one.listed.store.task, one.listed.offset_sum) for one in found if one.kept] == [
        ("0_3", 999),
        ("0_3", 998),
        ("0_4", 9),
        ("0_4", 8),
    ]


def test_a_store_without_a_changelog_goes_by_time() -> None:
    taken = [candidate(None, timedelta(hours=n)) for n in (3, 1, 2)]
    (stays,) = (one for one in decide(*taken, policy={"keep_last": 1}) if one.kept)
    assert stays.listed.captured_at == NOW - timedelta(hours=1)


def test_no_candidates_no_decisions() -> None:
    assert plan_retention([], RetentionPolicy(keep_last=1), now=NOW) == ()


candidates = st.lists(
    st.builds(
        candidate,
        st.one_of(st.none(), st.integers(0, 50)),
        st.integers(-50, 5000).map(lambda hours: timedelta(hours=hours)),
        store=st.sampled_from([COUNTS, StoreId("orders", "0_10", "counts")]),
        pinned=st.booleans(),
        damage=st.sampled_from([None, None, "gone"]),
        history=st.sampled_from(["", "a"]),
    ),
    max_size=25,
    unique_by=lambda one: one.listed.id,
)
policies = st.builds(
    RetentionPolicy,
    keep_last=st.integers(0, 4),
    keep_within=st.one_of(st.none(), st.integers(0, 900).map(lambda n: timedelta(hours=n))),
    keep_hourly=st.integers(0, 3),
    keep_daily=st.integers(0, 3),
    keep_weekly=st.integers(0, 3),
    keep_monthly=st.integers(0, 3),
    keep_yearly=st.integers(0, 3),
)


@given(candidates, policies)
def test_whatever_the_rules_the_newest_usable_of_each_store_stays(
    taken: list[Candidate], policy: RetentionPolicy
) -> None:
    decisions = plan_retention(taken, policy, now=NOW)
    stays = {one.listed.id for one in decisions if one.kept}
    assert sorted(one.listed.id for one in decisions) == sorted(one.listed.id for one in taken)
    assert all(one.reasons for one in decisions)
    assert {one.listed.id for one in taken if one.pinned} <= stays
    for group in {(one.listed.store, one.history) for one in taken}:
        usable = [
            one.listed
            for one in taken
            if (one.listed.store, one.history) == group and one.damage is None
        ]
        if usable and policy.keep_last:
            assert max(usable, key=lambda one: one.age_order).id in stays
        assert not usable or stays & {one.id for one in usable}


@given(candidates, policies)
def test_pruning_twice_removes_nothing_more(
    taken: list[Candidate], policy: RetentionPolicy
) -> None:
    stays = {one.listed.id for one in plan_retention(taken, policy, now=NOW) if one.kept}
    again = plan_retention([one for one in taken if one.listed.id in stays], policy, now=NOW)
    assert all(one.kept for one in again)


@given(candidates, policies, st.integers(1, 3))
def test_a_more_generous_rule_keeps_no_less(
    taken: list[Candidate], policy: RetentionPolicy, more: int
) -> None:
    generous = msgspec.structs.replace(policy, keep_last=policy.keep_last + more)
    before = {one.listed.id for one in plan_retention(taken, policy, now=NOW) if one.kept}
    after = {one.listed.id for one in plan_retention(taken, generous, now=NOW) if one.kept}
    usable_groups = {(one.listed.store, one.history) for one in taken if one.damage is None}
    by_rule = {
        one.listed.id
        for one in taken
        if one.listed.id in before and (one.listed.store, one.history) in usable_groups
    }
    lost = by_rule - after
    # What stayed only because nothing else did may give its place to what a rule now keeps.
    assert len(lost) <= len(usable_groups)


UNDATED = "nothing dates the deletions"


def test_h01_the_newest_that_is_sure_to_be_restored_stays_beside_newer_ones_that_are_not() -> None:
    unsure = [candidate(100 + n, timedelta(hours=5 - n), unsure=UNDATED) for n in range(4)]
    sure = [candidate(offset, timedelta(hours=100 - offset)) for offset in (50, 60)]
    found = kept(*unsure, *sure, keep_last=3)
    assert found.keys() == {103, 102, 101, 60}
    assert found[60] == (f"the newest that is sure to be restored: the last one is not, {UNDATED}")
    again = kept(*unsure, *sure, candidate(110, timedelta(0)), keep_last=3)
    assert again.keys() == {110, 103, 102}, "the newest is sure now, so no older one is needed"


def test_h01_a_damaged_or_doubtful_snapshot_is_not_the_one_that_is_sure() -> None:
    newest = candidate(100, unsure=UNDATED)
    broken = candidate(90, timedelta(hours=2), damage="blob x is missing")
    forged = msgspec.structs.replace(candidate(80, timedelta(hours=3)), doubt="of the future")
    genuine = candidate(70, timedelta(hours=4))
    assert kept(newest, broken, forged, genuine, keep_last=1).keys() == {100, 80, 70}


def test_where_none_is_sure_the_rules_alone_decide() -> None:
    all_unsure = [candidate(100 + n, timedelta(hours=5 - n), unsure=UNDATED) for n in range(4)]
    assert kept(*all_unsure, keep_last=2).keys() == {103, 102}


def test_h55_an_incomplete_snapshot_takes_the_place_of_no_complete_one() -> None:
    complete = [candidate(offset, timedelta(hours=100 - offset)) for offset in (50, 60, 70)]
    incomplete = [candidate(100 + n, timedelta(hours=5 - n), complete=False) for n in range(4)]
    found = kept(*complete, *incomplete, keep_last=2)
    assert found.keys() == {70, 60, 103, 102}
    assert found[103] == "incomplete, and takes the place of no complete one; last 1 of 2"
    assert kept(*incomplete, keep_last=2).keys() == {103, 102}


def test_h55_a_complete_one_that_is_sure_stays_beside_one_that_is_not() -> None:
    found = kept(
        candidate(100, timedelta(hours=1), complete=False),
        candidate(90, timedelta(hours=2), unsure=UNDATED),
        candidate(80, timedelta(hours=3)),
        candidate(70, timedelta(hours=4)),
        keep_last=1,
    )
    assert found.keys() == {100, 90, 80}

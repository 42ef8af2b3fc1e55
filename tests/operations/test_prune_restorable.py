"""Retention leaves of each store a snapshot that can be restored, if there is one."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore.model.listing import ListedSnapshot
from snapstore.model.restorable import why_unsure
from snapstore.model.resume import require_deadline
from snapstore.model.snapshot import Description, Fence, NotedTail, Position
from tests.model.fences import CAPTURED, DAY_MS, fence, plan, state
from tests.support.prune_lab import PruneLab
from tests.support.repository import describe, publish

UNDATED = {"behind_since": None}
TAIL = NotedTail(stop=110, observed_at=CAPTURED, delete_retention_ms=DAY_MS, deletions=3)


@pytest.fixture
def lab(tmp_path: Path) -> PruneLab:
    return PruneLab(tmp_path / "repository")


def put(lab: PruneLab, taken: Fence | None, offset: int, **facts: object) -> ListedSnapshot:
    lab.later(timedelta(hours=1))
    description = described(taken, offset, captured_at=lab.clock())
    return publish(lab.repository, msgspec.structs.replace(description, **facts))


def described(taken: Fence | None, offset: int = 99, **facts: object) -> Description:
    description = describe(offsets=(offset,), **facts)  # type: ignore[arg-type]
    if taken is None:
        return description
    taken = msgspec.structs.replace(taken, end_offset=offset + 10, high_watermark=offset + 10)
    (position,) = description.positions
    fenced = Position(position=position.position, fence=taken)
    return msgspec.structs.replace(description, positions=(fenced,))


def test_h01_keep_last_never_drops_the_newest_that_is_sure_to_be_restored(lab: PruneLab) -> None:
    put(lab, fence(), 100)
    sure = put(lab, fence(), 200)
    unsure = [put(lab, fence(**UNDATED), offset) for offset in (300, 400, 500)]
    for report in (
        lab.plan(lab.options(keep_last=2)),
        lab.prune(lab.options(keep_last=2)),
        lab.prune(lab.options(keep_last=2)),
    ):
        kept = {each.listed: each.reasons for each in report.decisions if each.kept}
        assert kept.keys() == {sure, *unsure[1:]}
        assert kept[sure] == (
            "the newest that is sure to be restored: the last one is not, nothing dates the "
            "deletions in orders-counts-changelog:0 that follow it",
        )
    put(lab, fence(tail=TAIL, **UNDATED), 600)
    lab.prune(lab.options(keep_last=2))
    assert lab.listed() == [600, 500], "the last one is sure now"


def test_h55_incomplete_snapshots_never_displace_a_complete_one(lab: PruneLab) -> None:
    complete = [put(lab, fence(), offset) for offset in (100, 200)]
    incomplete = [put(lab, fence(), offset, complete=False) for offset in (300, 400, 500)]
    report = lab.prune(lab.options(keep_last=1))
    assert {each.listed for each in report.decisions if each.kept} == {complete[1], incomplete[2]}
    assert lab.listed() == [500, 200]


@pytest.mark.parametrize(
    ("taken", "sure"),
    [
        (fence(), True),
        (fence(**UNDATED), False),
        (fence(delete_retention_ms=None), False),
        (fence(tail=TAIL, **UNDATED), True),
        (fence(cleanup_policy="delete", **UNDATED), True),
        (fence(cleanup_policy="", **UNDATED), False),
    ],
)
def test_what_an_entry_says_is_what_a_restore_right_after_it_would_do(
    taken: Fence, sure: bool
) -> None:
    assert (why_unsure(described(taken)) is None) is sure
    policy = taken.cleanup_policy or "compact"
    resume = plan(taken, state(cleanup_policy=policy))
    assert resume.gap_free_required is not sure
    if sure:
        require_deadline(resume)


def test_what_has_no_fence_or_may_hold_an_aborted_transaction_is_not_sure() -> None:
    assert "no fence" in (why_unsure(described(None)) or "")
    hot = msgspec.structs.replace(
        described(fence()),
        status="open",
        guarantee="exactly_once",
        guarantee_found_by="changelog",
    )
    assert "a transaction that aborts" in (why_unsure(hot) or "")
    closed = msgspec.structs.replace(hot, status="closed")
    assert why_unsure(closed) is None

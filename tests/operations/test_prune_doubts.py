"""Entries that cannot be true take the place of no genuine snapshot."""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Description, Fence
from snapstore.operations.prune import plan_prune, prune
from snapstore.operations.prune_report import PruneReport
from snapstore.operations.upkeep import Actor
from snapstore.repository import keys
from tests.model.fences import state
from tests.support.log_in_memory import LogInMemory
from tests.support.prune_lab import DAY, PruneLab
from tests.support.repository import COUNTS, describe, publish

YEARS = timedelta(days=3 * 365)


@pytest.fixture
def lab(tmp_path: Path) -> PruneLab:
    return PruneLab(tmp_path / "repository")


def put(
    lab: PruneLab,
    offset: int,
    *,
    ahead: timedelta = timedelta(),
    log_end: int | None = None,
    store: StoreId = COUNTS,
) -> ListedSnapshot:
    """Put a snapshot with a manifest of its own, dated so far ahead."""
    return publish(lab.repository, fenced(lab.clock() + ahead, offset, log_end, store))


def fenced(
    captured_at: datetime, offset: int, log_end: int | None, store: StoreId = COUNTS
) -> Description:
    description = describe(store, offsets=(offset,), captured_at=captured_at)
    if log_end is None:
        return description
    fence = Fence(cluster_id="c", topic_id="t", partition_count=1, end_offset=log_end)
    (position,) = description.positions
    return msgspec.structs.replace(
        description, positions=(msgspec.structs.replace(position, fence=fence),)
    )


def test_h23_entries_of_the_future_displace_no_snapshot_and_are_named(lab: PruneLab) -> None:
    genuine = [lab.save(offset, f"t{offset}") for offset in (100, 200, 300)]
    forged = [put(lab, 2**62 + number, ahead=YEARS) for number in range(3)]
    report = lab.prune(lab.options(keep_last=3))
    assert report.removed == ()
    assert {*report.doubtful} == {*forged}
    assert all("in the future" in doubt for doubt in report.doubtful.values())
    assert {*lab.repository.catalog.list_all().snapshots} == {*genuine, *forged}
    assert sum("is doubtful" in note for note in lab.notes) == 3
    # The rules go on as if they were not there.
    lab.save(400, "t400")
    assert [each.listed for each in lab.prune(lab.options(keep_last=3)).removed] == [genuine[0]]


def test_h68_at_an_equal_offset_a_date_of_the_future_does_not_win(lab: PruneLab) -> None:
    today = lab.save(100, "t100")
    tomorrow = put(lab, 100, ahead=timedelta(days=73 * 365))
    report = lab.prune(lab.options(keep_last=1))
    assert report.removed == ()
    assert [*report.doubtful] == [tomorrow]
    assert today in lab.repository.catalog.list_all().snapshots


def test_h23_what_was_stored_before_it_was_captured_is_doubtful_for_ever(lab: PruneLab) -> None:
    forged = put(lab, 900, ahead=timedelta(days=2))
    lab.later(3 * DAY)
    genuine = lab.save(100, "t100")
    report = lab.prune(lab.options(keep_last=1))
    assert [*report.doubtful] == [forged]
    assert "the storage had it" in report.doubtful[forged]
    assert genuine in lab.repository.catalog.list_all().snapshots


def test_clocks_that_differ_by_less_than_an_hour_raise_no_doubt(lab: PruneLab) -> None:
    lab.save(100, "t100")
    put(lab, 200, ahead=timedelta(minutes=59))
    report = lab.prune(lab.options(keep_last=1))
    assert (len(report.removed), report.doubtful) == (1, {})


def test_h23_an_offset_beyond_its_own_fence_is_doubtful(lab: PruneLab) -> None:
    genuine = put(lab, 100, log_end=101)
    forged = put(lab, 2**62, log_end=101)
    report = lab.prune(lab.options(keep_last=1))
    assert [*report.doubtful] == [forged]
    assert report.removed == ()
    assert genuine in lab.repository.catalog.list_all().snapshots


def test_h23_an_offset_beyond_a_log_end_that_was_seen_later_is_doubtful(lab: PruneLab) -> None:
    forged = put(lab, 10**6, log_end=10**6 + 1)
    lab.later(DAY)
    genuine = [put(lab, offset, log_end=offset + 1) for offset in (100, 200)]
    report = lab.prune(lab.options(keep_last=2))
    assert [*report.doubtful] == [forged]
    assert "saw at" in report.doubtful[forged]
    assert report.removed == ()
    assert {*genuine} < {*lab.repository.catalog.list_all().snapshots}


def test_a_log_that_grows_raises_no_doubt(lab: PruneLab) -> None:
    for offset in range(100, 1100, 100):
        put(lab, offset, log_end=offset + 1)
        lab.later(timedelta(hours=6))
    report = lab.prune(lab.options(keep_last=1))
    assert (len(report.removed), report.doubtful) == (9, {})


def test_h23_with_kafka_an_offset_beyond_the_log_end_is_doubtful(lab: PruneLab) -> None:
    genuine = put(lab, 100, log_end=101)
    forged = put(lab, 2**62, log_end=2**62 + 1)
    log = LogEnd(101)
    assert len(lab.plan(lab.options(keep_last=1)).removed) == 1
    for report in (with_log(lab, log, dry_run=True), with_log(lab, log, dry_run=False)):
        assert report.removed == ()
        assert [*report.doubtful] == [forged]
        assert "beyond the log end 101" in report.doubtful[forged]
    assert genuine in lab.repository.catalog.list_all().snapshots


def test_another_topic_of_that_name_says_nothing_about_a_snapshot(lab: PruneLab) -> None:
    put(lab, 100, log_end=101)
    put(lab, 500, log_end=501)
    report = with_log(lab, LogEnd(3, topic_id="made anew"), dry_run=False)
    assert (len(report.removed), report.doubtful) == (1, {})


@pytest.mark.parametrize("lost", ["manifest", "entry"])
def test_h23_entries_without_a_manifest_of_their_own_displace_no_snapshot(
    lab: PruneLab, lost: str
) -> None:
    genuine = [lab.save(offset, f"t{offset}") for offset in (100, 200, 300)]
    for blob in lab.objects(keys.BLOBS):
        # They lie in an archive, as it were: damaged until they are fetched back.
        lab.storage.delete([blob])
    for number in range(3):
        forged = put(lab, 2**62 + number)
        gone = keys.manifest(forged.id) if lost == "manifest" else keys.entry(forged)
        lab.storage.delete([gone])
        if lost == "entry":
            lab.storage.put(gone, b"{}")
    report = lab.prune(lab.options(keep_last=3))
    assert not {decision.listed for decision in report.removed} & {*genuine}


def test_h23_a_second_entry_of_a_snapshot_takes_nothing_of_it_along(lab: PruneLab) -> None:
    """Its key names another time, so it is damaged and goes; the manifest is the genuine one's."""
    genuine = lab.save(100, "t100")
    copy = msgspec.structs.replace(genuine, offset_sum=1)
    body = lab.storage.get(keys.entry(genuine), limit_bytes=1 << 20)
    lab.storage.put(keys.entry(copy), body)
    lab.later()
    report = lab.prune(lab.options(keep_last=1))
    assert [decision.listed for decision in report.removed] == [copy]
    assert lab.objects(keys.REMOVED) == []
    assert lab.objects(keys.CONDEMNED) == []
    lab.require_whole()


class LogEnd(LogInMemory):
    """A changelog that ends where a test says, of one cluster and topic id."""

    def __init__(self, end: int, *, topic_id: str = "t") -> None:
        super().__init__()
        self._end = end
        self._topic_id = topic_id

    def inspect(self, changelog: ChangelogPartition, *, now: datetime) -> PartitionState:
        return state(
            changelog=changelog,
            cluster_id="c",
            topic_id=self._topic_id,
            log_end=self._end,
            high_watermark=self._end,
            observed_at=now,
        )


def with_log(lab: PruneLab, log: LogEnd, *, dry_run: bool) -> PruneReport:
    options = lab.options(keep_last=1)
    if dry_run:
        return plan_prune(lab.repository, options, clock=lab.clock, changelog=log)
    return prune(
        lab.repository,
        options,
        Actor(run="prune", holder="tests"),
        clock=lab.clock,
        listener=lab.events.append,
        changelog=log,
    )

"""What a prune removes and what it leaves, in time."""

import hashlib
import os
from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import RefusedError, RunInProgressError, StorageError
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import FORMAT, Manifest
from snapstore.operations.prune import PruneOptions, prune
from snapstore.operations.upkeep import WORK, Actor
from snapstore.repository import Leases, Repository, keys
from snapstore.testing.faults import Fault, FaultyStorage, Instead, denied
from tests.support.prune_lab import DAY, LATER, WAIT, PruneLab, content, sizes
from tests.support.repository import COUNTS, describe, publish


@pytest.fixture
def lab(tmp_path: Path) -> PruneLab:
    return PruneLab(tmp_path / "repository")


def test_bytes_are_marked_first_and_deleted_by_a_run_after_the_wait(lab: PruneLab) -> None:
    lab.save(100, "a", "b")
    lab.later()
    lab.save(200, "b", "c")

    first = lab.prune()
    assert [decision.listed.applied_offset for decision in first.removed] == [100]
    assert (first.condemned.count, first.condemned.size_bytes) == (1, sizes("a"))
    assert first.freed.size_bytes == 0
    assert lab.names() == {"a", "b", "c"}

    lab.later(WAIT - timedelta(minutes=1))
    second = lab.prune()
    assert (second.waiting.count, second.deleted_blobs.count) == (1, 0)

    lab.later(timedelta(minutes=2))
    third = lab.prune()
    assert third.deleted_blobs.size_bytes == sizes("a")
    assert third.deleted_manifests.count == 1
    assert lab.names() == {"b", "c"}
    lab.require_whole()


def test_in_the_end_nothing_is_left_of_what_was_removed(lab: PruneLab) -> None:
    lab.save(100, "a", "b")
    lab.later()
    lab.save(200, "c")
    for _ in range(5):
        lab.prune()
        lab.later()
    left = [key for key in lab.objects() if not key.startswith(keys.LEASES)]
    listed = lab.repository.catalog.list_all().snapshots[0]
    sha256 = hashlib.sha256(content("c")).hexdigest()
    assert left == sorted(
        [
            keys.blob(sha256),
            keys.manifest(listed.id),
            keys.entry(listed),
            keys.MARKER,
            keys.MARKER_COPY,
        ]
    )
    assert len(lab.objects(keys.LEASES)) <= 2


def test_blobs_stay_as_long_as_any_kept_snapshot_names_them_g42(lab: PruneLab) -> None:
    lab.save(100, "a", "b")
    lab.save(200, "b", "c")
    lab.save(300, "c", "d")
    lab.later()
    lab.prune()
    lab.later()
    lab.prune()
    assert lab.listed() == [300]
    assert lab.names() == {"c", "d"}
    lab.require_whole()


def test_deleting_a_snapshot_by_hand_keeps_what_the_next_one_needs_g42(lab: PruneLab) -> None:
    first = lab.save(100, "a", "b")
    lab.save(200, "b", "c")
    lab.later()
    lab.repository.withdraw([first], run="r", now=lab.clock())
    for _ in range(2):
        lab.prune(lab.options(keep_last=5))
        lab.later()
    assert lab.names() == {"b", "c"}
    lab.require_whole()


def test_what_a_run_is_just_sending_is_left_alone_g41(lab: PruneLab) -> None:
    entries = lab.send("x")
    assert lab.prune().condemned.count == 0
    publish(lab.repository, describe(captured_at=lab.clock()), entries)
    lab.later()
    lab.prune()
    assert lab.names() == {"x"}
    lab.require_whole()


def test_orphans_go_though_no_snapshot_is_due_g45_and_their_bytes_are_told_g53(
    lab: PruneLab,
) -> None:
    lab.save(100, "a")
    lab.send("x", "y", "z")
    lab.later()
    first = lab.prune()
    assert (first.removed, first.condemned.count) == ((), 3)
    lab.later()
    second = lab.prune()
    assert (second.deleted_blobs.count, second.freed.size_bytes) == (3, sizes("x", "y", "z"))
    assert lab.names() == {"a"}


def test_bytes_that_are_needed_again_before_they_go_are_stored_under_a_new_name(
    lab: PruneLab,
) -> None:
    lab.send("x")
    lab.later()
    lab.prune()
    listed = lab.save(100, "x", run="anew")
    (file,) = lab.repository.manifests.load(listed.id).files
    assert file.blob == f"{file.sha256}.anew"
    for _ in range(3):
        lab.later()
        lab.prune()
        lab.require_whole()
    assert lab.objects(keys.BLOBS) == [keys.blob(f"{file.sha256}.anew")]


def test_a_name_stays_dead_after_its_blob_is_gone_until_no_sweeper_can_remember_it(
    lab: PruneLab,
) -> None:
    lab.send("x")
    sha256 = hashlib.sha256(content("x")).hexdigest()
    blobs = []
    for number in range(6):
        lab.later()
        report = lab.prune()
        writer = lab.repository.begin_run(f"look{number}")
        blobs.append((report.deleted_blobs.count, sha256 in writer._condemned))
    assert blobs == [(0, True), (1, True), (0, True), (0, False), (0, False), (0, False)]
    assert lab.objects(keys.SWEPT) == []


def test_a_run_that_published_what_was_condemned_meanwhile_keeps_it_for_good(
    lab: PruneLab,
) -> None:
    entries = lab.send("x")
    lab.later()
    lab.prune()
    publish(lab.repository, describe(captured_at=lab.clock()), entries)
    for _ in range(5):
        lab.later()
        assert lab.prune().deleted_blobs.count == 0
        lab.require_whole()


def test_blobs_that_an_unreadable_manifest_may_name_are_not_judged_g44(lab: PruneLab) -> None:
    broken = lab.save(100, "a")
    lab.save(200, "b")
    lab.send("orphan")
    lab.later()
    lab.prune(lab.options(keep_last=5))
    lab.storage.put(keys.manifest(broken.id), b"broken")
    lab.later()

    report = lab.prune(lab.options(keep_last=5))

    assert report.deleted_blobs.count == report.condemned.count == 0
    assert len(report.unjudged) == 1
    assert f"snapshot {broken.id[:12]} of orders/0_1/counts may name any blob" in report.unjudged[0]
    assert any("no blob was condemned or deleted" in note for note in lab.notes)
    assert lab.names() == {"a", "b", "orphan"}


def test_the_rest_of_a_sweep_goes_on_when_blobs_cannot_be_judged_g44(lab: PruneLab) -> None:
    broken = lab.save(100, "a")
    lab.save(200, "b")
    old = lab.save(50, "c")
    lab.prune(lab.options(keep_last=2))
    lab.storage.put(keys.manifest(broken.id), b"broken")
    lab.later()
    report = lab.prune(lab.options(keep_last=2))
    assert report.unjudged
    assert report.deleted_manifests.count == 1
    assert keys.manifest(old.id) not in lab.objects()


def test_an_entry_without_its_manifest_is_not_judged_either_and_is_not_counted(
    lab: PruneLab,
) -> None:
    lab.save(100, "a")
    broken = lab.save(200, "b")
    lab.storage.delete([keys.manifest(broken.id)])
    lab.later()
    report = lab.prune()
    assert report.unjudged
    assert not report.removed
    assert lab.listed() == [200, 100]


def test_a_key_in_the_catalog_that_is_not_understood_stops_the_deleting(lab: PruneLab) -> None:
    lab.send("x")
    lab.later()
    lab.prune()
    lab.later()
    lab.storage.put("catalog/orders/0_1/counts/strange.json", b"{}")
    report = lab.prune()
    assert report.unjudged == ("catalog/orders/0_1/counts/strange.json is not understood",)
    assert lab.names() == {"x"}


def test_the_decision_is_taken_on_a_fresh_catalog_g47(lab: PruneLab) -> None:
    old_view = Repository(lab.connect(), lab.repository.marker)
    lab.save(100, "a")
    lab.later()
    assert old_view.catalog.list_all().snapshots
    lab.send("b")
    lab.later()
    lab.prune()
    lab.save(200, "a")
    lab.later()
    lab.prune(storage=old_view.storage)
    assert lab.names() == {"a"}
    assert lab.listed() == [200]
    lab.require_whole()


def test_two_prunes_exclude_each_other_and_the_second_says_whose_turn_it_is(
    lab: PruneLab,
) -> None:
    other = Leases(lab.storage, WORK, holder="process 7 on a", clock=lab.clock)
    with (
        other.held(),
        pytest.raises(RunInProgressError, match="process 7 on a has been at upkeep since"),
    ):
        lab.prune()
    lab.prune()


def test_a_prune_that_died_holds_nobody_up_for_long(lab: PruneLab) -> None:
    lease = Leases(lab.storage, WORK, holder="gone", clock=lab.clock).held()
    lease.__enter__()
    with pytest.raises(RunInProgressError, match="gone"):
        lab.prune()
    lab.later(timedelta(minutes=11))
    lab.prune()


@pytest.mark.parametrize("back", [timedelta(minutes=6), timedelta(days=400)])
def test_a_clock_that_went_back_stops_the_sweep_until_it_is_right_again(
    lab: PruneLab, back: timedelta
) -> None:
    lab.save(100, "a")
    lab.save(200, "b")
    lab.later()
    lab.prune()
    lab.later()
    lab.clock.advance(-LATER - back)
    before = lab.objects(keys.BLOBS)
    with pytest.raises(RefusedError, match="the clock of this host went back"):
        lab.prune(lab.options(keep_last=1))
    assert lab.objects(keys.BLOBS) == before
    lab.clock.advance(LATER + back)
    assert lab.prune().deleted_blobs.count == 1


@pytest.mark.parametrize("wrong", [timedelta(hours=-2), timedelta(hours=2), timedelta(days=400)])
def test_a_host_whose_clock_is_wrong_does_not_prune_and_keeps_no_other_from_it(
    lab: PruneLab, wrong: timedelta
) -> None:
    lab.save(100, "a")
    lab.save(200, "b")
    with pytest.raises(RefusedError, match="nothing can be said of ages"):
        prune(
            lab.repository,
            lab.options(keep_last=1),
            Actor(run="wrong", holder="wrong"),
            clock=lambda: lab.clock() + wrong,
            listener=lab.events.append,
        )
    assert lab.listed() == [200, 100]
    assert len(lab.prune().removed) == 1


def test_objects_of_the_future_stop_the_sweep(lab: PruneLab) -> None:
    lab.later(10 * DAY)
    lab.save(100, "a")
    lab.later(-10 * DAY)
    with pytest.raises(RefusedError, match="the clock of the storage went back"):
        lab.prune()


def test_after_a_clock_that_ran_ahead_for_years_pruning_goes_on_when_that_is_accepted(
    lab: PruneLab,
) -> None:
    lab.save(100, "a")
    lab.later(3650 * DAY)
    lab.save(200, "b")
    lab.send("orphan")
    lab.later()
    lab.prune()
    crashed = Leases(lab.storage, WORK, holder="crashed", clock=lab.clock).held()
    crashed.__enter__()
    lab.clock.advance(-3650 * DAY)
    with pytest.raises(RunInProgressError):
        lab.prune()
    accepted = PruneOptions(policy=lab.options().policy, accept_earlier_clock=True)
    lab.prune(accepted)
    assert lab.names() == {"a", "b", "orphan"}
    for _ in range(4):
        lab.later()
        lab.prune(accepted)
    assert lab.names() == {"b"}
    lab.require_whole()


def test_a_dry_run_shows_all_of_it_and_changes_nothing(lab: PruneLab) -> None:
    lab.save(100, "a", "b")
    lab.send("orphan")
    lab.later()
    lab.save(200, "b", "c")
    before = lab.objects()
    plan = lab.plan()
    assert lab.objects() == before
    done = lab.prune()
    assert plan.dry_run
    assert plan.decisions == done.decisions
    assert plan.condemned == done.condemned
    assert plan.condemned.size_bytes == sizes("a", "orphan")
    lab.later()
    plan, done = lab.plan(), lab.prune()
    assert plan.freed == done.freed
    assert plan.freed.count == 3


def test_a_dry_run_takes_no_lease(lab: PruneLab) -> None:
    with Leases(lab.storage, WORK, holder="other", clock=lab.clock).held():
        lab.plan()


def test_a_manifest_that_was_never_published_goes_after_the_wait_and_takes_its_blobs_along(
    lab: PruneLab,
) -> None:
    lab.save(100, "a")
    entries = lab.send("x")
    description = describe(offsets=(50,), captured_at=lab.clock())
    lab.repository.manifests.put(Manifest(format=FORMAT, description=description, files=entries))
    counts = []
    for _ in range(5):
        lab.later()
        report = lab.prune()
        counts.append((report.deleted_manifests.count, report.deleted_blobs.count))
    assert counts == [(0, 0), (1, 0), (0, 1), (0, 0), (0, 0)]
    assert any("never published" in note for note in lab.notes)
    assert lab.names() == {"a"}
    assert lab.listed() == [100]


def test_what_seems_to_have_lost_its_entry_is_kept_for_a_repair(lab: PruneLab) -> None:
    listed = lab.save(100, "a")
    lab.storage.delete([keys.entry(listed)])
    for _ in range(4):
        lab.later()
        report = lab.prune()
        assert report.lost == (listed.id,)
    assert any("snapstore repair brings back" in note for note in lab.notes)
    assert lab.names() == {"a"}
    assert lab.objects(keys.MANIFESTS)


def test_a_store_whose_last_snapshot_was_removed_on_purpose_leaves_nothing(lab: PruneLab) -> None:
    listed = lab.save(100, "a")
    lab.repository.withdraw([listed], run="r", now=lab.clock())
    for _ in range(4):
        lab.later()
        lab.prune()
    assert lab.names() == set()
    assert lab.objects(keys.MANIFESTS) == lab.objects(keys.REMOVED) == []


def test_only_one_application_is_pruned_when_asked_but_the_sweep_is_over_all(
    lab: PruneLab,
) -> None:
    other = StoreId("other", "0_0", "s")
    for offset in (100, 200):
        lab.save(offset, "a")
        lab.save(offset, "b", store=other)
    lab.send("orphan")
    lab.later()
    policy = lab.options(keep_last=1).policy
    report = lab.prune(PruneOptions(policy=policy, application="orders"))
    assert {decision.listed.store for decision in report.decisions} == {COUNTS}
    assert lab.listed() == [200, 200, 100]
    assert report.condemned.count == 1


def test_a_key_that_will_not_go_is_named_and_its_bytes_are_not_counted_g78(
    lab: PruneLab,
) -> None:
    lab.send("x", "y")
    lab.later()
    lab.prune()
    lab.later()
    (first, _) = lab.objects(keys.BLOBS)
    stubborn = FaultyStorage(
        lab.storage,
        [
            Fault(
                "delete",
                Instead(StorageError("no", failed=[first])),
                key=keys.BLOBS,
            )
        ],
    )
    report = lab.prune(storage=stubborn)
    assert report.failed == (first,)
    assert report.deleted_blobs.count == 1


def test_an_entry_that_will_not_go_keeps_its_bytes(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.save(200, "b")
    lab.later()
    (entry, _) = lab.objects(keys.CATALOG)
    stubborn = FaultyStorage(
        lab.storage,
        [
            Fault(
                "delete",
                Instead(StorageError("no", failed=[entry])),
                key=keys.CATALOG,
            )
        ],
    )
    report = lab.prune(storage=stubborn)
    assert report.failed == (entry,)
    assert report.condemned.count == 0
    assert all(decision.kept for decision in report.decisions)
    assert lab.listed() == [200, 100]


@pytest.mark.parametrize("method", ["list", "get", "stat", "delete", "put"])
def test_a_storage_that_cannot_be_reached_is_an_error_and_no_reason_to_delete(
    lab: PruneLab, method: str
) -> None:
    lab.save(100, "a")
    lab.send("x")
    lab.later()
    lab.prune()
    lab.later()
    before = lab.objects(keys.BLOBS), lab.objects(keys.CATALOG)
    broken = FaultyStorage(lab.storage, [Fault(method, Instead(denied()), calls=None)])  # type: ignore[arg-type]
    with pytest.raises(type(denied())):
        lab.prune(storage=broken)
    assert (lab.objects(keys.BLOBS), lab.objects(keys.CATALOG)) == before


def test_leftovers_of_a_crashed_local_write_are_removed_young_ones_are_not_g52(
    tmp_path: Path,
) -> None:
    lab = PruneLab(tmp_path / "repository")
    folder = tmp_path / "repository" / ".unfinished"
    folder.mkdir(exist_ok=True)
    for name, age in (("old", timedelta(hours=26)), ("young", timedelta(hours=24))):
        (folder / name).write_bytes(b"half")
        then = (lab.clock() - age).timestamp()
        os.utime(folder / name, (then, then))
    assert lab.plan().aborted_uploads == 1
    assert lab.prune().aborted_uploads == 1
    assert [path.name for path in folder.iterdir()] == ["young"]


def test_the_grace_time_lengthens_the_wait_and_never_shortens_it(lab: PruneLab) -> None:
    policy = lab.options(keep_last=1).policy
    assert lab.plan(PruneOptions(policy=policy, grace=timedelta(0))).wait == WAIT
    assert lab.plan(PruneOptions(policy=policy, grace=9 * DAY)).wait == 9 * DAY


def test_h52_what_no_snapshot_names_is_counted_and_dated_as_long_as_it_lies_there(
    lab: PruneLab,
) -> None:
    began = lab.clock()
    lab.send("young")
    report = lab.plan()
    assert (report.young.count, report.young.size_bytes) == (1, sizes("young"))
    assert report.young_until == began + WAIT
    assert lab.prune().young == report.young
    lab.later()
    marked_at = lab.clock()
    report = lab.prune()
    assert (report.young.count, report.young_until, report.condemned.count) == (0, None, 1)
    lab.later(timedelta(hours=1))
    report = lab.prune()
    assert (report.waiting.size_bytes, report.waiting_until) == (sizes("young"), marked_at + WAIT)
    lab.later()
    assert lab.prune().freed.size_bytes >= sizes("young")

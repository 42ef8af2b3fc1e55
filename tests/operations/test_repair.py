"""Catalog and storage compared both ways, and brought into agreement."""

import hashlib
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import RefusedError, RunInProgressError, StorageError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import FORMAT, Manifest
from snapstore.operations.repair import RepairOptions, propose_repair, repair
from snapstore.operations.repair_plan import RepairReport
from snapstore.operations.upkeep import WORK, Actor
from snapstore.operations.verify_repository import verify_repository
from snapstore.ports import ObjectStorage
from snapstore.repository import Leases, Repository, keys
from snapstore.testing.faults import (
    Fault,
    FaultyStorage,
    Hidden,
    Instead,
    Method,
    timed_out,
)
from tests.support.prune_lab import LATER, PruneLab, content
from tests.support.repository import describe

HOUR = timedelta(hours=1)
WRITES: tuple[Method, ...] = ("put", "delete")


@pytest.fixture
def lab(tmp_path: Path) -> PruneLab:
    return PruneLab(tmp_path / "repository")


def mend(
    lab: PruneLab, *, read_data: bool = False, storage: ObjectStorage | None = None
) -> RepairReport:
    return repair(
        Repository(storage or lab.storage, lab.repository.marker),
        RepairOptions(read_data=read_data, parallel=2),
        Actor(run="mend", holder="tests"),
        clock=lab.clock,
        listener=lab.events.append,
    )


def propose(lab: PruneLab, *, read_data: bool = False) -> RepairReport:
    options = RepairOptions(read_data=read_data)
    return propose_repair(lab.repository, options, clock=lab.clock, listener=lab.events.append)


def sound(lab: PruneLab) -> bool:
    return verify_repository(lab.repository, clock=lab.clock).sound


def blob_of(name: str) -> str:
    return keys.blob(hashlib.sha256(content(name)).hexdigest())


def ids(report: RepairReport) -> dict[str, list[str]]:
    return {
        "rebuilt": [each.listed.id for each in report.rebuilt],
        "quarantined": [each.listed.id for each in report.quarantined],
        "left": [each.listed.id for each in report.left],
    }


def test_a_repository_in_order_needs_nothing(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.send("orphan")
    lab.later()
    before = lab.objects()
    report = verify_repository(lab.repository, clock=lab.clock)
    assert report.sound
    assert (report.snapshots, report.blobs, report.unnamed_blobs) == (1, 2, 1)
    assert report.unnamed_bytes == len(content("orphan"))
    assert ids(mend(lab)) == {"rebuilt": [], "quarantined": [], "left": []}
    assert [key for key in lab.objects() if not key.startswith(keys.LEASES)] == before


@pytest.mark.parametrize("body", [b'{"ver', b"{}", b"", b"\x00" * 100])
def test_a_damaged_entry_is_rebuilt_from_its_manifest_g50(lab: PruneLab, body: bytes) -> None:
    listed = lab.save(100, "a")
    other = lab.save(200, "b")
    entry = lab.repository.catalog.load(listed)
    lab.storage.put(keys.entry(listed), body)
    lab.later(HOUR)
    assert not sound(lab)

    report = mend(lab)

    assert ids(report) == {"rebuilt": [listed.id], "quarantined": [], "left": []}
    rebuilt = lab.repository.catalog.load(listed)
    assert rebuilt.description == entry.description
    assert (rebuilt.files, rebuilt.size_bytes) == (entry.files, entry.size_bytes)
    assert lab.storage.get(f"quarantine/mend/{keys.entry(listed)}", limit_bytes=1000) == body
    assert {each.id for each in lab.repository.catalog.list_all().snapshots} == {
        listed.id,
        other.id,
    }
    assert sound(lab)


def test_a_whole_catalog_that_was_lost_is_rebuilt_g50(lab: PruneLab) -> None:
    listed = [lab.save(offset, "a", str(offset)) for offset in (100, 200, 300)]
    lab.storage.delete(lab.objects(keys.CATALOG))
    lab.later(HOUR)
    assert len(mend(lab).rebuilt) == 3
    assert set(lab.repository.catalog.list_all().snapshots) == set(listed)
    lab.require_whole()
    assert sound(lab)


def test_what_was_removed_on_purpose_is_not_brought_back(lab: PruneLab) -> None:
    lab.save(100, "a")
    kept = lab.save(200, "b")
    deleted = lab.save(150, "c")
    lab.repository.withdraw([deleted], run="r", now=lab.clock())
    lab.prune()
    lab.storage.delete(lab.objects(keys.CATALOG))
    lab.later(HOUR)
    assert ids(mend(lab))["rebuilt"] == [kept.id]


def test_a_manifest_that_a_run_may_just_publish_is_left_alone(lab: PruneLab) -> None:
    description = describe(captured_at=lab.clock())
    lab.repository.manifests.put(
        Manifest(format=FORMAT, description=description, files=lab.send("a"))
    )
    report = verify_repository(lab.repository, clock=lab.clock)
    assert (report.sound, report.unfinished) == (True, 1)
    assert not mend(lab).rebuilt
    lab.later(HOUR)
    assert len(mend(lab).rebuilt) == 1


@pytest.mark.parametrize("lost", ["manifest", "blob", "half a blob", "a damaged manifest"])
def test_a_snapshot_whose_bytes_are_gone_is_taken_out_and_told(lab: PruneLab, lost: str) -> None:
    whole = lab.save(100, "a", "shared")
    broken = lab.save(200, "b", "shared")
    entry = lab.storage.get(keys.entry(broken), limit_bytes=10_000)
    key = keys.manifest(broken.id) if "manifest" in lost else blob_of("b")
    lab.storage.delete([key])
    if lost == "half a blob":
        lab.storage.put(key, content("b")[:-1])
    if lost == "a damaged manifest":
        lab.storage.put(key, b"(\xb5/\xfd nonsense")
    lab.later(HOUR)
    assert not sound(lab)

    report = mend(lab)

    assert ids(report) == {"rebuilt": [], "quarantined": [broken.id], "left": []}
    assert lab.repository.catalog.list_all().snapshots == (whole,)
    assert lab.storage.get(f"quarantine/mend/{keys.entry(broken)}", limit_bytes=10_000) == entry
    assert sound(lab)
    lab.require_whole()


def test_a_snapshot_whose_lost_blob_turns_up_again_comes_back(lab: PruneLab) -> None:
    broken = lab.save(200, "b")
    lab.storage.delete([blob_of("b")])
    lab.later(HOUR)
    mend(lab)
    lab.storage.put(blob_of("b"), content("b"))
    assert ids(mend(lab))["rebuilt"] == [broken.id]
    lab.require_whole()


def test_bytes_that_changed_are_found_by_reading_and_no_later_snapshot_relies_on_them(
    lab: PruneLab,
) -> None:
    broken = lab.save(100, "a", "b")
    lab.storage.put(blob_of("b"), b"x" * len(content("b")))
    lab.later(HOUR)
    assert sound(lab)
    assert not mend(lab).quarantined

    report = mend(lab, read_data=True)

    assert ids(report)["quarantined"] == [broken.id]
    assert report.condemned == (keys.parse_blob(blob_of("b")),)
    lab.save(200, "a", "b")
    lab.require_whole()


def test_a_blob_that_was_lost_is_sent_anew_by_the_next_run_after_a_prune(lab: PruneLab) -> None:
    lab.save(100, "a", "b")
    lab.storage.delete([blob_of("b")])
    report = lab.prune()
    assert not report.removed
    assert any("that snapshots name" in note for note in lab.notes)
    fresh = lab.save(200, "a", "b", run="fresh")
    names = [file.blob for file in lab.repository.manifests.load(fresh.id).files]
    assert [name for name in names if name and name.endswith(".fresh")] == [names[1]]


def test_a_key_in_the_catalog_that_is_none_goes_to_the_quarantine(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.storage.put("catalog/orders/notes.txt", b"hello")
    assert not sound(lab)
    assert mend(lab).strange == ("catalog/orders/notes.txt",)
    assert lab.objects(keys.QUARANTINE) == ["quarantine/mend/catalog/orders/notes.txt"]
    assert sound(lab)


def test_keys_that_mean_nothing_are_told_and_left(lab: PruneLab) -> None:
    lab.storage.put("elsewhere/x", b"")
    lab.storage.put("blobs/ab/short", b"")
    report = verify_repository(lab.repository, clock=lab.clock)
    assert set(report.foreign) == {"elsewhere/x", "blobs/ab/short"}
    assert report.sound
    mend(lab)
    assert {"elsewhere/x", "blobs/ab/short"} <= set(lab.objects())


def test_what_a_newer_snapstore_wrote_is_left_alone(lab: PruneLab) -> None:
    listed = lab.save(100, "a")
    body = lab.storage.get(keys.entry(listed), limit_bytes=10_000)
    newer = body.replace(b'"format":1', b'"format":2')
    lab.storage.put(keys.entry(listed), newer)
    lab.later()
    report = mend(lab)
    assert ids(report) == {"rebuilt": [], "quarantined": [], "left": []}
    assert "written by a newer snapstore" in report.notes[0]
    assert lab.storage.get(keys.entry(listed), limit_bytes=10_000) == newer
    assert all(decision.kept for decision in lab.prune(lab.options(keep_last=1)).decisions)


def test_a_proposal_changes_nothing_and_says_what_a_repair_then_does(lab: PruneLab) -> None:
    lost = lab.save(100, "a")
    gone = lab.save(200, "b")
    lab.storage.delete([keys.entry(lost), blob_of("b")])
    lab.later(HOUR)
    before = lab.objects()
    proposal = propose(lab)
    assert lab.objects() == before
    assert (
        ids(proposal)
        == ids(mend(lab))
        == {
            "rebuilt": [lost.id],
            "quarantined": [gone.id],
            "left": [],
        }
    )


def test_a_storage_that_says_once_that_a_blob_is_not_there_is_asked_again(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.later(HOUR)
    doubtful = FaultyStorage(lab.storage, [Fault("stat", Hidden(), key=keys.BLOBS)])
    assert not mend(lab, storage=doubtful).quarantined


LOOKS: tuple[Method, ...] = ("list", "get", "stat")


@pytest.mark.parametrize("method", LOOKS)
def test_what_could_not_be_looked_at_is_not_taken_for_lost_g49(
    lab: PruneLab, method: Method
) -> None:
    lab.save(100, "a")
    lab.later(HOUR)
    entries = lab.objects(keys.CATALOG)
    broken = FaultyStorage(lab.storage, [Fault(method, Instead(timed_out()), calls=None)])
    with pytest.raises(StorageError):
        mend(lab, storage=broken)
    assert lab.objects(keys.CATALOG) == entries


def test_repair_and_prune_exclude_each_other(lab: PruneLab) -> None:
    lease = Leases(lab.storage, WORK, holder="a prune", clock=lab.clock)
    with lease.held(), pytest.raises(RunInProgressError, match="a prune"):
        mend(lab)


def test_a_clock_that_went_back_stops_a_repair(lab: PruneLab) -> None:
    mend(lab)
    lab.clock.advance(-LATER)
    with pytest.raises(RefusedError, match="went back"):
        mend(lab)


@pytest.mark.slow
def test_a_repair_cut_short_at_any_write_is_finished_by_the_next(tmp_path: Path) -> None:
    for cut in range(1, 12):
        lab = PruneLab(tmp_path / str(cut))
        listed = broken_in_every_way(lab)
        plan = [
            Fault(method, Instead(StorageError("cut")), call=cut, calls=None) for method in WRITES
        ]
        with suppress(StorageError):
            mend(lab, storage=FaultyStorage(lab.storage, plan))
        lab.later(timedelta(minutes=20))
        mend(lab)
        assert set(lab.repository.catalog.list_all().snapshots) == set(listed), cut
        lab.require_whole()
        assert sound(lab)


def broken_in_every_way(lab: PruneLab) -> list[ListedSnapshot]:
    """Return the snapshots that can be had back."""
    lost, damaged = lab.save(100, "a"), lab.save(200, "b")
    gone = lab.save(300, "c")
    lab.storage.delete([keys.entry(lost), blob_of("c")])
    lab.storage.put(keys.entry(damaged), b"{}")
    lab.storage.put("catalog/strange", b"")
    lab.later(HOUR)
    assert gone.id
    return [lost, damaged]

"""Garbage in any place of a repository stops nothing for ever, and no marker is made of it."""

from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import (
    ConflictError,
    ManifestInvalidError,
    RepositoryNotFoundError,
    RunInProgressError,
)
from snapstore.operations.repair import RepairOptions, repair
from snapstore.operations.repair_marker import RecoveredMarker, recover_marker
from snapstore.operations.repair_plan import RepairReport
from snapstore.operations.upkeep import Actor
from snapstore.operations.verify_repository import verify_repository
from snapstore.repository import Repository, keys, marker
from tests.support.prune_lab import PruneLab
from tests.support.restore_lab import RestoreLab

GARBAGE = b"garbage\xff"
LEASE = f"{keys.LEASES}upkeep/{7:020}"


@pytest.fixture
def lab(tmp_path: Path) -> PruneLab:
    return PruneLab(tmp_path / "repository")


def mended(lab: PruneLab, run: str = "repair") -> RepairReport:
    return repair(
        lab.repository,
        RepairOptions(),
        Actor(run=run, holder="tests"),
        clock=lab.clock,
        listener=lab.events.append,
    )


def recovered(lab: PruneLab, *, dry_run: bool = False) -> RecoveredMarker:
    return recover_marker(lab.storage, run="repair", now=lab.clock(), dry_run=dry_run)


@pytest.mark.parametrize("body", [GARBAGE, b"{}", b"", b"[]"])
def test_h24_an_old_lease_that_cannot_be_read_stops_nobody(lab: PruneLab, body: bytes) -> None:
    lab.storage.put(LEASE, body)
    with pytest.raises(RunInProgressError, match="damaged") as refused:
        lab.prune()
    assert "10 minutes" in str(refused.value.hint)
    lab.later(timedelta(minutes=11))
    lab.prune()
    assert LEASE not in lab.objects(keys.LEASES)
    mended(lab)


@pytest.mark.parametrize("name", ["5", "abc", "9" * 400, "00x", ".free", "5.free"])
def test_h24_what_is_no_lease_counts_for_none(lab: PruneLab, name: str) -> None:
    if len(name) < 250:
        lab.storage.put(f"{keys.LEASES}upkeep/{name}", GARBAGE)
    lab.prune()
    mended(lab)


PLACES = [
    f"{keys.PINS}garbage",
    f"{keys.CONDEMNED}zz/garbage",
    f"{keys.MANIFESTS}zz/garbage",
    f"{keys.REMOVED}garbage",
    f"{keys.SWEPT}garbage",
    f"{keys.SWEPT}20260101T000000-run-0000.json",
    f"{keys.LEASES}garbage",
    f"{keys.LEASES}upkeep/garbage",
    f"{keys.CATALOG}garbage",
]


@pytest.mark.parametrize("key", PLACES)
def test_h24_garbage_anywhere_is_told_and_taken_away_by_a_repair(lab: PruneLab, key: str) -> None:
    lab.save(100, "a")
    lab.save(200, "b")
    lab.storage.put(key, GARBAGE)
    verify_repository(lab.repository, clock=lab.clock)
    report = lab.prune(lab.options(keep_last=1))
    assert len(report.removed) == 1
    assert bool(report.unjudged) == key.startswith(keys.CATALOG)
    assert any(key in note for note in lab.notes)
    mended_report = mended(lab)
    assert key in (*mended_report.strange, *mended_report.garbage)
    assert key not in lab.objects()
    assert [found for found in lab.objects(keys.QUARANTINE) if found.endswith(key)]
    lab.later()
    assert lab.prune(lab.options(keep_last=1)).unjudged == ()
    lab.require_whole()


@pytest.mark.parametrize(
    "name", [".DS_Store", ".nfs00000000012a", "Thumbs.db", "a/.DS_Store", "lost+found/x"]
)
@pytest.mark.parametrize(
    "folder", [keys.CATALOG, keys.BLOBS, keys.MANIFESTS, keys.PINS, keys.LEASES]
)
def test_h65_what_consoles_and_file_systems_leave_stops_no_sweep(
    lab: PruneLab, folder: str, name: str
) -> None:
    lab.save(100, "a")
    lab.save(200, "b")
    path = lab.folder / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(GARBAGE)
    report = lab.prune(lab.options(keep_last=1))
    assert (len(report.removed), report.unjudged) == (1, ())
    lab.later()
    assert lab.prune(lab.options(keep_last=1)).condemned.count == 1
    assert mended(lab).strange == ()
    assert path.exists()


@pytest.mark.parametrize(
    "key", ["catalog/", "catalog/orders/", "pins/", "blobs/", "leases/upkeep/"]
)
def test_h65_folders_that_a_console_makes_are_litter(key: str) -> None:
    assert keys.is_litter(key)
    for ours in (keys.MARKER, keys.blob("a" * 64), LEASE, f"{keys.CATALOG}.a/.b/.c/x.json"):
        assert not keys.is_litter(ours)


def test_h65_a_fresh_disk_with_lost_and_found_takes_a_repository(tmp_path: Path) -> None:
    (tmp_path / "repository" / "lost+found").mkdir(parents=True)
    (tmp_path / "repository" / "lost+found").chmod(0)
    (tmp_path / "repository" / ".DS_Store").write_bytes(GARBAGE)
    RestoreLab(tmp_path)


def test_h53_a_lost_marker_is_put_back_from_its_copy(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.storage.delete([keys.MARKER])
    with pytest.raises(ManifestInvalidError) as refused:
        Repository.open(lab.storage)
    assert "snapstore repair" in str(refused.value.hint)
    before = lab.objects()
    assert recovered(lab, dry_run=True).marker == lab.repository.marker
    assert lab.objects() == before
    assert recovered(lab).marker == lab.repository.marker
    assert Repository.open(lab.storage).marker == lab.repository.marker


def test_h53_a_damaged_marker_is_kept_in_the_quarantine_and_put_back(lab: PruneLab) -> None:
    lab.storage.put(keys.MARKER, GARBAGE)
    assert "put back" in str(recovered(lab).note)
    assert Repository.open(lab.storage).marker == lab.repository.marker
    assert lab.objects(keys.QUARANTINE) == [keys.quarantined("repair", keys.MARKER)]
    assert recovered(lab).note is None


def test_h53_a_repository_of_before_gets_its_copy_from_a_prune(lab: PruneLab) -> None:
    lab.storage.delete([keys.MARKER_COPY])
    lab.prune()
    assert marker.read_copy(lab.storage) == lab.repository.marker


def test_h53_without_both_a_marker_is_made_that_claims_less(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.storage.delete([keys.MARKER, keys.MARKER_COPY])
    with pytest.raises(ManifestInvalidError):
        Repository.open(lab.storage)
    made = recovered(lab).marker
    assert made.id != lab.repository.marker.id
    assert made.uploads == "read_back"
    assert made.longest_run >= lab.repository.marker.longest_run
    repository = Repository.open(lab.storage)
    assert len(repository.catalog.list_all().snapshots) == 1


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ({}, RepositoryNotFoundError),
        ({"manifests/readme": b"x"}, RepositoryNotFoundError),
        ({f"manifests/aa/{'a' * 64}.json.zst": b"x"}, RepositoryNotFoundError),
        ({"other/data": b"x", "manifests/x": b"y"}, ManifestInvalidError),
    ],
)
def test_h53_no_marker_is_made_of_what_is_no_repository(
    lab: PruneLab, found: dict[str, bytes], error: type[Exception]
) -> None:
    lab.storage.delete([keys.MARKER, keys.MARKER_COPY])
    for key, body in found.items():
        lab.storage.put(key, body)
    with pytest.raises(error):
        recovered(lab)
    assert lab.objects() == sorted(found)


def test_h53_the_copy_of_another_repository_gives_way_to_the_marker(
    lab: PruneLab, tmp_path: Path
) -> None:
    other = PruneLab(tmp_path / "other")
    lab.storage.put(keys.MARKER_COPY, other.storage.get(keys.MARKER_COPY, limit_bytes=1 << 16))
    assert recovered(lab).marker == lab.repository.marker
    assert marker.read_copy(lab.storage) == lab.repository.marker


def test_h53_no_second_repository_is_made_over_one_that_lost_its_marker(lab: PruneLab) -> None:
    lab.save(100, "a")
    lab.storage.delete([keys.MARKER])
    with pytest.raises(ConflictError):
        Repository.create(lab.storage, created_at=lab.clock())


def test_h52_a_repair_says_which_young_manifests_it_passes_over(lab: PruneLab) -> None:
    lab.save(100, "a")
    listed = lab.save(200, "b")
    lab.storage.delete([keys.entry(listed)])
    report = mended(lab)
    assert (report.rebuilt, report.passed_over) == ((), (listed.id,))
    assert any(listed.id[:12] in note and "15 minutes" in note for note in report.notes)
    lab.later(timedelta(minutes=16))
    report = mended(lab, "again")
    assert ([each.listed.id for each in report.rebuilt], report.passed_over) == ([listed.id], ())

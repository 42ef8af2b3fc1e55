"""A store of which no snapshot can be used: the operator is told what can be had without it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.cli.restores import plan_lines, report_lines
from snapstore.model.identity import StoreId
from snapstore.operations.restore_plan import RestorePlan
from snapstore.operations.restore_report import RestoreReport, UnrestorableStore
from tests.cli.conftest import Cli
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

CONTENT = Pairs(pairs=some_pairs(300), applied_offset=99)
BAD = f"{APPLICATION}/0_0/sums"
GOOD = [f"{APPLICATION}/0_0/counts", f"{APPLICATION}/0_1/counts"]


@pytest.fixture
def saved(url: str, cli: Cli, tmp_path: Path) -> Path:
    """A repository with one snapshot of three stores in two tasks."""
    folder = tmp_path / "orders-state"
    for store in [*GOOD, BAD]:
        _, task, name = store.split("/")
        pairs = some_pairs(300, start=ord(name[0]) + int(task[-1]))
        make_key_value(folder, task, name, Pairs(pairs=pairs, applied_offset=99))
    assert cli("snapshot", "-r", url, "--state-dir", folder).code == 0
    return Path(url)


def break_entry(repository: Path) -> None:
    (entry,) = repository.glob(f"catalog/{APPLICATION}/0_0/sums/*")
    entry.write_bytes(b"{")


def break_manifest(repository: Path) -> None:
    (entry,) = repository.glob(f"catalog/{APPLICATION}/0_0/sums/*")
    (manifest,) = repository.glob(f"manifests/*/{_id(entry)}*")
    manifest.write_bytes(b"no manifest")


def lose_manifest(repository: Path) -> None:
    (entry,) = repository.glob(f"catalog/{APPLICATION}/0_0/sums/*")
    (manifest,) = repository.glob(f"manifests/*/{_id(entry)}*")
    manifest.unlink()


def _id(entry: Path) -> str:
    return entry.stem.rpartition("-")[2]


DAMAGE = pytest.mark.parametrize("damage", [break_entry, break_manifest, lose_manifest])
Damage = Callable[[Path], None]


def restore(cli: Cli, saved: Path, target: Path, *more: str) -> tuple[object, ...]:
    return (
        "restore",
        *("-r", saved, "--application", APPLICATION, "--target", target),
        *("--allow-unchecked-changelog", *more),
    )


@DAMAGE
def test_one_unusable_store_refuses_all_and_the_error_names_the_others(
    cli: Cli, saved: Path, tmp_path: Path, damage: Damage
) -> None:
    damage(saved)
    target = tmp_path / "new"
    result = cli(*restore(cli, saved, target, "--json"))
    assert result.code == 4, result.err
    assert result.error["facts"]["unrestorable"] == [BAD]
    assert sorted(result.error["facts"]["restorable"]) == GOOD
    assert "--skip-unrestorable" in result.error["hint"]
    assert "--task" in result.error["hint"]
    assert not target.exists()


@DAMAGE
def test_the_others_are_restored_where_that_is_asked_for(
    cli: Cli, saved: Path, tmp_path: Path, damage: Damage
) -> None:
    damage(saved)
    target = tmp_path / "new"
    planned = cli(*restore(cli, saved, target, "--skip-unrestorable", "--dry-run"))
    assert planned.code == 0, planned.err
    assert f"{BAD}: not restored: " in planned.out
    done = cli(*restore(cli, saved, target, "--skip-unrestorable"))
    assert done.code == 0, done.err
    assert f"{BAD}: not restored: " in done.out
    assert "fills it from its changelog" in done.out
    assert "restored 2 stores" in done.out
    found = {str(path.parent.relative_to(target)) for path in target.rglob("CURRENT")}
    assert found == {store.replace("/counts", "/rocksdb/counts") for store in GOOD}
    assert cli("fsck", target).code == 0


def test_without_a_usable_store_nothing_can_be_skipped(
    cli: Cli, saved: Path, tmp_path: Path
) -> None:
    for entry in saved.glob(f"catalog/{APPLICATION}/*/*/*"):
        entry.write_bytes(b"{")
    result = cli(*restore(cli, saved, tmp_path / "new", "--skip-unrestorable", "--json"))
    assert result.code == 4
    assert "restorable" not in result.error["facts"]
    assert not (tmp_path / "new").exists()


def test_the_proof_against_the_changelog_is_not_skipped_with_a_store(
    cli: Cli, saved: Path, tmp_path: Path
) -> None:
    break_entry(saved)
    line = restore(cli, saved, tmp_path / "new", "--skip-unrestorable")
    result = cli(*(each for each in line if each != "--allow-unchecked-changelog"))
    assert result.code == 5
    assert not (tmp_path / "new").exists()


def test_of_one_task_the_stores_whose_bytes_are_whole_are_restored(
    cli: Cli, saved: Path, tmp_path: Path
) -> None:
    reference = f"{APPLICATION}/sums:0"
    shown = cli("show", reference, "--files", "-r", saved, "--json").document
    blobs = {each["sha256"] for each in shown["file_list"] if not each["inline"]}
    assert blobs
    for path in saved.glob("blobs/*/*"):
        if path.name in blobs:
            path.unlink()
    refused = cli(*restore(cli, saved, tmp_path / "new"))
    assert refused.code == 3
    done = cli(*restore(cli, saved, tmp_path / "other", "--skip-unrestorable", "--json"))
    assert done.code == 0, done.err
    assert [each["store"] for each in done.document["unrestorable"]] == [BAD]
    assert sorted(each["store"] for each in done.document["items"]) == GOOD
    assert cli("fsck", tmp_path / "other").code == 0


def test_snapshots_that_cannot_be_used_are_not_called_missing(tmp_path: Path) -> None:
    left = UnrestorableStore(store=BAD, code="integrity", reason="its blob is gone")
    report = RestoreReport(
        target=tmp_path,
        stores=(),
        kept_stores=(),
        replaced=(),
        failed=(),
        notes=(),
        unrestorable=(left,),
    )
    plan = RestorePlan(target=tmp_path, tasks=(), left_out={StoreId(*BAD.split("/")): left.reason})
    for lines in (report_lines(report, 1.0), plan_lines(plan)):
        text = " ".join(lines)
        assert "there is no snapshot" not in text
        assert "its blob is gone" in text

"""A restore that is killed leaves the old directory or the new one; a re-run finishes."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from snapstore.errors import NoSpaceError, StorageError
from tests.support.crash import kill_at, points_of
from tests.support.restore_lab import (
    REPLACE,
    UNCHECKED,
    CountingStorage,
    RestoreLab,
    contents,
    tree,
)
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
)

RESTORE = "tests.support.restore_lab:restore_all"
SWAP_POINTS = [
    "held",
    "staging made",
    "other stores taken over",
    "files fetched",
    "offsets noted",
    "staging durable",
    "journal written",
    "directories exchanged",
    "new directory in place",
    "old directory removed",
    "journal removed",
]
MOVED_ASIDE = {"exchange": "no"}
"""Where a file system cannot exchange two directories, there is a moment without any."""

WORK = Path(".snapstore") / f"work-{os.geteuid()}"


@pytest.fixture
def lab(tmp_path: Path) -> RestoreLab:
    """Snapshots of a task with two stores."""
    lab = RestoreLab(tmp_path)
    source = tmp_path / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(2000), applied_offset=900))
    segments = {
        1700000000000: Pairs(pairs=some_pairs(20), applied_offset=41),
        1700000060000: Pairs(pairs=some_pairs(10), applied_offset=77),
    }
    make_window(source, "0_1", "windows", segments)
    lab.save(source)
    return lab


def make_target(tmp_path: Path) -> Path:
    """Make what is there before: other contents, and a store that was never saved."""
    target = tmp_path / "target"
    shutil.rmtree(target, ignore_errors=True)
    make_key_value(target, "0_1", "counts", Pairs(pairs=some_pairs(5), applied_offset=11))
    make_key_value(target, "0_1", "kept", Pairs(pairs=some_pairs(6), applied_offset=12))
    return target


def task_of(target: Path) -> Path:
    return target / APPLICATION / "0_1"


def kill_and_finish(
    lab: RestoreLab, tmp_path: Path, point: tuple[str, int], options: Mapping[str, str]
) -> str:
    """Kill a restore there, look at what it leaves, run it again; return what was left."""
    target = make_target(tmp_path)
    old = contents(target, tmp_path / "scratch")
    arguments = {"folder": str(tmp_path), "target": str(target), "slow_reads": "16384", **options}

    kill_at(RESTORE, arguments, *point)
    left = contents(target, tmp_path / "scratch")
    lab.restore(target, options=REPLACE)

    new = contents(target, tmp_path / "scratch")
    assert new.keys() == {
        "orders/0_1/rocksdb/counts",
        "orders/0_1/rocksdb/kept",
        "orders/0_1/windows/windows.1700000000000",
        "orders/0_1/windows/windows.1700000060000",
    }
    assert new["orders/0_1/rocksdb/kept"] == old["orders/0_1/rocksdb/kept"]
    assert new["orders/0_1/rocksdb/counts"] != old["orders/0_1/rocksdb/counts"]
    assert not list((target / APPLICATION).glob(".snapstore"))
    for name, there in (("old", old), ("new", new), ("none", {})):
        if left == there:
            return name
    raise AssertionError(f"neither the old directory nor the new one nor none: {left.keys()}")


@pytest.mark.slow
@pytest.mark.parametrize("point", SWAP_POINTS)
def test_killed_between_two_steps_and_run_again(
    lab: RestoreLab, tmp_path: Path, point: str
) -> None:
    left = kill_and_finish(lab, tmp_path, (point, 1), {})

    exchanged = SWAP_POINTS.index("directories exchanged")
    assert left == ("old" if SWAP_POINTS.index(point) < exchanged else "new")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "states"), [({}, ["old", "new"]), (MOVED_ASIDE, ["old", "none", "new"])]
)
def test_killed_anywhere_at_all_and_run_again(
    lab: RestoreLab, tmp_path: Path, options: dict[str, str], states: list[str]
) -> None:
    target = make_target(tmp_path)
    arguments = {"folder": str(tmp_path), "target": str(target), "slow_reads": "16384", **options}
    points = points_of(RESTORE, arguments)
    assert {point for point, _ in points} >= {*SWAP_POINTS} - {"directories exchanged"}

    left = [kill_and_finish(lab, tmp_path, point, options) for point in points]

    assert left == sorted(left, key=states.index)
    assert set(left) == {*states}


@pytest.mark.slow
def test_killed_twice_also_while_it_recovers(lab: RestoreLab, tmp_path: Path) -> None:
    target = make_target(tmp_path)
    old = contents(target, tmp_path / "scratch")
    arguments = {"folder": str(tmp_path), "target": str(target), **MOVED_ASIDE}

    kill_at(RESTORE, arguments, "old directory moved aside")
    kill_at(RESTORE, arguments, "old directory put back")

    assert contents(target, tmp_path / "scratch") == old
    lab.restore(target, options=REPLACE)
    assert len(contents(target, tmp_path / "scratch")) == 4
    assert any("was undone" in note for note in lab.notes)


def test_a_restore_of_another_task_resolves_what_was_left_too(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = make_target(tmp_path)
    old = contents(target, tmp_path / "scratch")
    make_key_value(
        tmp_path / "source", "0_2", "counts", Pairs(pairs=some_pairs(9), applied_offset=9)
    )
    lab.save(tmp_path / "source")
    arguments = {"folder": str(tmp_path), "target": str(target), **MOVED_ASIDE}
    kill_at(RESTORE, arguments, "old directory moved aside")
    assert not task_of(target).exists()

    lab.restore(target, lab.requests(task="0_2"), REPLACE)

    after = contents(target, tmp_path / "scratch")
    assert {name: each for name, each in after.items() if "/0_1/" in name} == old
    assert "orders/0_2/rocksdb/counts" in after


def test_a_killed_restore_into_an_empty_place_leaves_none(lab: RestoreLab, tmp_path: Path) -> None:
    arguments = {"folder": str(tmp_path), "target": str(tmp_path / "fresh")}

    kill_at(RESTORE, arguments, "journal written")

    assert not task_of(tmp_path / "fresh").exists()
    report = lab.restore(tmp_path / "fresh", options=UNCHECKED)
    assert report.fetched_bytes == 0
    assert len(contents(tmp_path / "fresh", tmp_path / "scratch")) == 3


def test_what_the_application_made_meanwhile_is_not_lost_nor_is_the_old_directory(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = make_target(tmp_path)
    old = tree(task_of(target))
    arguments = {"folder": str(tmp_path), "target": str(target), **MOVED_ASIDE}
    kill_at(RESTORE, arguments, "old directory moved aside")
    make_key_value(target, "0_1", "counts", Pairs(pairs=some_pairs(7), applied_offset=13))
    meanwhile = tree(task_of(target))

    lab.restore(target, lab.requests(store="windows"), REPLACE)

    assert any("has left the former" in note for note in lab.notes)
    (aside,) = (target / APPLICATION / ".snapstore" / "replaced").iterdir()
    assert tree(aside) == old
    after = tree(task_of(target))
    assert [after[name] for name in meanwhile] == [*meanwhile.values()]


def test_it_goes_on_by_byte_position(lab: RestoreLab, tmp_path: Path) -> None:
    target = tmp_path / "fresh"
    requests = lab.requests(store="counts")
    (listed,) = lab.listed(store="counts")
    total = sum(blob.stat().st_size for blob in lab.blobs_of(listed).values())
    cut = CountingStorage(
        lab.storage.url, budget_bytes=total // 2, failure=StorageError("connection lost")
    )
    with pytest.raises(StorageError, match="connection lost"):
        lab.restore(target, requests, storage=cut)
    assert not task_of(target).exists()

    rest = CountingStorage(lab.storage.url)
    report = lab.restore(target, requests, storage=rest)

    assert cut.read_bytes + rest.read_bytes == total
    assert any(start > 0 for start in rest.starts)
    assert report.fetched_bytes == rest.read_bytes
    assert set(contents(target, tmp_path / "scratch")) == {"orders/0_1/rocksdb/counts"}


def test_a_partial_file_with_wrong_bytes_is_fetched_again_from_its_beginning(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = tmp_path / "fresh"
    cut = CountingStorage(lab.storage.url, budget_bytes=30_000, failure=StorageError("lost"))
    with pytest.raises(StorageError):
        lab.restore(target, storage=cut)
    parts = [
        part for part in (target / APPLICATION / WORK / "parts").iterdir() if part.stat().st_size
    ]
    for part in parts:
        part.write_bytes(bytes(part.stat().st_size))
    assert parts

    lab.restore(target)

    make_target(tmp_path)
    assert contents(target, tmp_path / "scratch") == contents_of_fresh_restore(lab, tmp_path)


def test_a_staged_file_that_was_damaged_meanwhile_is_fetched_again(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = tmp_path / "fresh"
    kill_at(RESTORE, {"folder": str(tmp_path), "target": str(target)}, "staging durable")
    staged = target / APPLICATION / WORK / "staging" / "0_1"
    (table, *_) = sorted(staged.rglob("rocksdb/counts/*.sst"))
    content = bytearray(table.read_bytes())
    content[100] ^= 0xFF
    table.write_bytes(content)
    (staged / "stranger").write_bytes(b"x")

    report = lab.restore(target)

    assert report.fetched_bytes == len(content)
    assert not (task_of(target) / "stranger").exists()
    assert contents(target, tmp_path / "scratch") == contents_of_fresh_restore(lab, tmp_path)


def contents_of_fresh_restore(lab: RestoreLab, tmp_path: Path) -> dict[str, object]:
    lab.restore(tmp_path / "compared")
    return contents(tmp_path / "compared", tmp_path / "scratch")


def test_a_short_or_failing_read_leaves_nothing_under_a_final_name(
    lab: RestoreLab, tmp_path: Path
) -> None:
    target = tmp_path / "fresh"
    cut = CountingStorage(lab.storage.url, budget_bytes=8192, failure=NoSpaceError("full"))

    with pytest.raises(NoSpaceError):
        lab.restore(target, lab.requests(store="counts"), storage=cut)

    assert not list(target.rglob("CURRENT"))

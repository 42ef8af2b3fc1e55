"""A disk that is full, and a directory that does not hold still."""

import os
from pathlib import Path

import pytest

from snapstore.errors import NoSpaceError
from snapstore.model.report import Noted
from snapstore.operations.snapshot import SnapshotOptions
from snapstore.repository import HashCache, keys
from snapstore.storages.local import LocalStorage
from snapstore.testing.disks import fill, restless, small_disk
from tests.support import killed_work
from tests.support.folder_store import write_store
from tests.support.snapshot_lab import SnapshotLab

MIB = 1 << 20
FILES = {f"{name}.sst": name.encode() * MIB for name in "ab"}
MORE = {**FILES, **{f"{name}.sst": name.encode() * MIB for name in "cdef"}}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@needs_root
def test_a_repository_that_is_full_refuses_a_snapshot_and_keeps_the_others_whole(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 5 * MIB) as disk:
        lab = SnapshotLab(disk)
        state = write_store(tmp_path / "counts", FILES, 1)
        assert lab.save_one(state).error is None
        write_store(state, MORE, 2)

        outcome = lab.save_one(state, SnapshotOptions(transfers=1))

        assert isinstance(outcome.error, NoSpaceError)
        assert outcome.error.facts["needed_bytes"] == MIB
        available = outcome.error.facts["available_bytes"]
        assert isinstance(available, int)
        assert available < MIB
        assert "No space left on device" in outcome.error.message
        assert not [*(disk / "repository" / ".unfinished").iterdir()]
        assert [content["a.sst"] for content in lab.contents()] == [FILES["a.sst"]]


@needs_root
@pytest.mark.parametrize("left", [0, 4096])
def test_a_full_disk_at_any_write_of_a_small_snapshot_leaves_no_half_of_it(
    tmp_path: Path, left: int
) -> None:
    small = {"a.sst": b"a" * 3000}
    with small_disk(tmp_path / "disk", MIB) as disk:
        lab = SnapshotLab(disk)
        state = write_store(tmp_path / "counts", small, 1)
        lab.save(state)
        write_store(state, {"a.sst": b"b" * 3000}, 2)
        others = fill(disk, leave_bytes=left)
        assert isinstance(lab.save_one(state).error, NoSpaceError)
        assert len(lab.contents()) == 1
        assert not [*(disk / "repository" / ".unfinished").iterdir()]
        others.unlink()
        assert lab.save_one(state).error is None
        assert len(lab.contents()) == 2


@needs_root
def test_hashes_that_cannot_be_kept_are_told_and_cost_nothing_else(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MIB) as disk:
        lab = SnapshotLab(tmp_path)
        lab.cache = disk / "hashes"
        state = write_store(tmp_path / "counts", FILES, 1)
        lab.save(state)
        kept = lab.cache.read_bytes()
        write_store(state, MORE, 2)
        fill(disk)
        assert lab.save_one(state).error is None
        told = [event.message for event in lab.events if isinstance(event, Noted)]
        assert any("could not be kept" in message for message in told)
        assert lab.cache.read_bytes() == kept
        assert [path.name for path in disk.iterdir() if path.name.startswith(".")] == []
        HashCache(lab.cache)


@needs_root
def test_a_prune_on_a_full_disk_works_with_what_is_kept_back_h61(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4 * MIB) as disk:
        killed_work.place_for_sweep(disk)
        fill(disk)
        killed_work.sweep(str(disk))
        assert killed_work.require_whole(disk) == [9, 8]


@needs_root
def test_a_prune_with_nothing_kept_back_says_so_and_works_once_there_is_a_little_space(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 4 * MIB) as disk:
        killed_work.place_for_sweep(disk)
        before = killed_work.require_whole(disk)
        for piece in disk.glob("**/.reserve/*"):
            piece.unlink()
        others = fill(disk)
        with pytest.raises(NoSpaceError):
            killed_work.sweep(str(disk))
        assert killed_work.require_whole(disk) == before
        others.unlink()
        killed_work.grow_old(disk, killed_work.NIGHT)
        killed_work.sweep(str(disk))
        assert killed_work.require_whole(disk) == [9, 8]


def test_files_that_are_rewritten_while_they_are_read_are_stored_whole_or_not_at_all(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", FILES, 1)
    lab = SnapshotLab(tmp_path)

    def rewrite(number: int) -> None:
        with (state / "a.sst").open("r+b", buffering=0) as file:
            for place in range(0, MIB, 1 << 16):
                os.pwrite(file.fileno(), bytes([number % 251]) * (1 << 16), place)

    with restless(rewrite):
        outcomes = [lab.save_one(state, SnapshotOptions(attempts=1)) for _ in range(8)]

    assert all(outcome.status in ("stored", "failed") for outcome in outcomes)
    stored = [outcome for outcome in outcomes if outcome.status == "stored"]
    assert len(lab.contents()) == len(stored)
    for blob in LocalStorage((tmp_path / "repository").as_uri()).list(keys.BLOBS):
        assert blob.size == MIB


def test_files_that_come_and_go_while_a_store_is_read_never_make_a_snapshot_of_a_part(
    tmp_path: Path,
) -> None:
    names = [f"{name}.sst" for name in "abcdefgh"]
    state = write_store(tmp_path / "counts", {name: name.encode() * 1000 for name in names}, 1)
    lab = SnapshotLab(tmp_path)

    def replace(number: int) -> None:
        name = names[number % len(names)]
        (state / "new").write_bytes(name.encode() * 1000)
        (state / "new").rename(state / name)

    with restless(replace):
        for _ in range(8):
            lab.save_one(state)

    for content in lab.contents():
        assert {name: content[name] for name in names} == {
            name: name.encode() * 1000 for name in names
        }

"""Links are made in memory, large copies on a disk, and nothing is left of either."""

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend, rooms
from snapstore.testing.backend_contract import materialise
from tests.support.rocksdb import Shape, Store, locate, make_database


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "0_0"
    folder.mkdir()
    return folder


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the one in memory."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(rooms, "MEMORY", folder)
    return folder


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of the system's temporary one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_links_and_small_copies_are_in_memory(task: Path, memory: Path, disk: Path) -> None:
    make_database(task / "rocksdb/counts", 2000)
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        tables = [file.name for file in capture.files if file.name.endswith(".sst")]
        assert len([path for path in below(memory) if path.suffix == ".sst"]) == len(tables) > 1
        assert not below(disk)
    assert not list(memory.iterdir())
    assert not list(disk.iterdir())


def test_a_large_log_is_copied_to_a_disk(
    task: Path, memory: Path, disk: Path, tmp_path: Path
) -> None:
    store = Store(task / "rocksdb/counts", Shape(log=True, memtable_bytes=64 << 20))
    for _ in range(400):
        store.write(100)
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        (log,) = [path for path in below(disk) if path.suffix == ".log"]
        assert log.stat().st_size > 1 << 20
        assert all(path.is_symlink() or path.stat().st_size < 1 << 20 for path in below(memory))
        materialise(capture, tmp_path / "copy")
        expected = (task / "rocksdb/counts" / log.name).read_bytes()
    assert (tmp_path / "copy/rocksdb/counts" / log.name).read_bytes() == expected
    store.close()
    assert not list(memory.iterdir())
    assert not list(disk.iterdir())


@pytest.mark.parametrize("why", ["bytes", "inodes", "missing", "a place that was named"])
def test_without_memory_a_disk_does(
    task: Path, memory: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    make_database(task / "rocksdb/counts", 500)
    options = RocksDBBackend.Options()
    match why:
        case "bytes":
            monkeypatch.setattr(rooms, "_LEAST_FREE_BYTES", 1 << 62)
        case "inodes":
            monkeypatch.setattr(rooms, "_LEAST_FREE_INODES", 1 << 62)
        case "missing":
            memory.rmdir()
        case _:
            options = RocksDBBackend.Options(staging_dir=str(disk))
    backend = RocksDBBackend(options)
    with backend.capture(locate(task, "rocksdb/counts")):
        assert below(disk)
        assert not memory.exists() or not list(memory.iterdir())
    with backend.open_view(task, "rocksdb/counts"):
        assert below(disk)
        assert not memory.exists() or not list(memory.iterdir())
    assert not list(disk.iterdir())


def test_memory_that_gets_scarce_meanwhile_is_left_alone(
    memory: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rooms.open_rooms(None) as opened:
        assert opened.inner().links.is_relative_to(memory)
        monkeypatch.setattr(rooms, "_LEAST_FREE_BYTES", 1 << 62)
        assert opened.inner().links.is_relative_to(disk)


def test_what_killed_runs_left_is_removed_and_what_is_in_use_is_not(
    memory: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, foreign = memory / "snapstore-links-left", memory / "of-somebody-else"
    for folder in (left / "view", foreign):
        folder.mkdir(parents=True)
    (left / "view" / "000001.sst").symlink_to("/proc/self/fd/0")
    with ExitStack() as stack:
        used = stack.enter_context(rooms.open_links(None))
        assert left.exists(), "it may be so young that it is not locked yet"
        monkeypatch.setattr(rooms, "_YOUNG_S", -1)
        other = stack.enter_context(rooms.open_links(None))
        assert {*memory.iterdir()} == {used, other, foreign}
    assert list(memory.iterdir()) == [foreign]


def test_a_folder_that_another_process_removes_stays_for_that(
    memory: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "_YOUNG_S", -1)
    left = memory / "snapstore-links-left"
    left.mkdir()
    other = os.open(left, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with rooms.open_links(None):
        assert left.exists()
    os.close(other)

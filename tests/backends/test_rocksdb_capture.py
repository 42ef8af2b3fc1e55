"""Sources that are odd, broken or in the middle of something. G numbers: docs/faults.md."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import (
    CaptureError,
    NoSpaceError,
    SourceDamagedError,
    StoreChangedError,
    StoreNotFoundError,
    UnsafePathError,
)
from snapstore.testing.backend_contract import look_of, materialise, replay
from tests.support.rocksdb import (
    RocksDBMaker,
    Store,
    locate,
    make_database,
    raw_contents,
)

Task = Path


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = tmp_path / "0_0"
    folder.mkdir()
    return folder


def _tables(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sst"))


def _names(task: Task, root: str, backend: RocksDBBackend | None = None) -> list[str]:
    with (backend or RocksDBBackend()).capture(locate(task, root)) as capture:
        return [file.name for file in capture.files]


def test_only_what_a_database_needs_is_captured(task: Task) -> None:  # G28
    folder = make_database(task / "rocksdb/counts", 500)
    (folder / "LOG.old.1700000000000000").write_text("old")
    (folder / "000001.sst").write_bytes(b"left behind by a crash")
    names = [Path(name).name for name in _names(task, "rocksdb/counts")]
    assert "CURRENT" in names
    assert sum(name.startswith("MANIFEST-") for name in names) == 1
    assert not [
        name
        for name in names
        if name.startswith(("LOCK", "LOG", "IDENTITY", "rocksdict")) or name.endswith(".log")
    ]
    assert "000001.sst" not in names


def test_small_mutable_files_travel_inline_and_tables_carry_their_identity(task: Task) -> None:
    make_database(task / "rocksdb/counts", 500)
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        for file in capture.files:
            assert (file.identity is not None) == file.name.endswith(".sst")
            assert file.inline == (not file.name.endswith(".sst"))
            if file.identity is not None:
                status = (task / file.name).stat()
                assert file.identity.inode == status.st_ino
                assert file.identity.mtime_ns == status.st_mtime_ns
                assert file.identity.size == file.size == status.st_size


def test_a_store_that_is_the_task_directory_itself_has_bare_file_names(task: Task) -> None:
    make_database(task, 500)
    names = _names(task, ".")
    assert "CURRENT" in names
    assert all("/" not in name for name in names)


@pytest.mark.parametrize(
    "content",
    [b"", b"MANIFEST-000021", b"MANIFEST-000021\r\n", b"../MANIFEST-000021\n", b"\0" * 16],
)
def test_a_broken_current_is_named(task: Task, content: bytes) -> None:  # G22
    folder = make_database(task / "rocksdb/counts", 10)
    (folder / "CURRENT").write_bytes(content)
    with pytest.raises(SourceDamagedError, match="rocksdb/counts/CURRENT"):
        _names(task, "rocksdb/counts")
    with (
        pytest.raises(SourceDamagedError, match="rocksdb/counts/CURRENT"),
        RocksDBBackend().open_view(task, "rocksdb/counts"),
    ):
        pass


def test_a_manifest_that_current_names_but_that_is_not_there_is_named(task: Task) -> None:  # G23
    folder = make_database(task / "rocksdb/counts", 10)
    (folder / "CURRENT").write_bytes(b"MANIFEST-999999\n")
    with pytest.raises(SourceDamagedError, match="counts/MANIFEST-999999"):
        _names(task, "rocksdb/counts")


@pytest.mark.parametrize("size", [0, 37])
def test_a_table_that_is_too_short_is_named_each_time(task: Task, size: int) -> None:  # G24
    folder = make_database(task / "rocksdb/counts", 500)
    table = _tables(folder)[0]
    os.truncate(table, size)
    for _ in range(3):
        with pytest.raises(SourceDamagedError, match=f"counts/{table.name}"):
            _names(task, "rocksdb/counts")
    with (
        pytest.raises(SourceDamagedError, match=f"counts/{table.name}"),
        RocksDBBackend().open_view(task, "rocksdb/counts"),
    ):
        pass


def test_a_live_table_that_is_missing_is_named_within_a_second(task: Task) -> None:  # G25
    """Of waiting: what the machine takes for the rest is its own affair."""
    slept: list[float] = []
    folder = make_database(task / "rocksdb/counts", 500)
    table = _tables(folder)[0]
    table.unlink()
    with pytest.raises(SourceDamagedError, match=f"counts/{table.name}") as caught:
        _names(task, "rocksdb/counts", RocksDBBackend(sleep=slept.append))
    assert sum(slept) < 1
    assert caught.value.facts["file"] == f"rocksdb/counts/{table.name}"
    assert "changelog" in (caught.value.hint or "")


def test_tables_without_current_are_refused(task: Task) -> None:  # G26
    folder = make_database(task / "rocksdb/counts", 500)
    (folder / "CURRENT").unlink()
    with pytest.raises(SourceDamagedError, match="counts/CURRENT"):
        _names(task, "rocksdb/counts")


def test_a_database_that_is_being_created_is_waited_for(task: Task) -> None:  # G26
    folder = task / "rocksdb/counts"
    folder.mkdir(parents=True)
    (folder / "LOCK").touch()
    with pytest.raises(StoreChangedError, match="being created"):
        _names(task, "rocksdb/counts")

    patient = RocksDBBackend(sleep=lambda _: Store(folder).close())
    assert "rocksdb/counts/CURRENT" in _names(task, "rocksdb/counts", patient)


def test_an_empty_folder_is_no_state(task: Task) -> None:  # G18
    (task / "rocksdb/counts").mkdir(parents=True)
    with pytest.raises(StoreNotFoundError, match="no state"):
        _names(task, "rocksdb/counts")


def test_a_table_that_comes_back_between_two_tries_is_waited_for(task: Task) -> None:  # G30
    folder = make_database(task / "rocksdb/counts", 500)
    table = _tables(folder)[0]
    aside = table.rename(task / "aside")

    def bring_back(seconds: float) -> None:
        shutil.copy(aside, table)

    backend = RocksDBBackend(sleep=bring_back)
    assert f"rocksdb/counts/{table.name}" in _names(task, "rocksdb/counts", backend)


def test_a_source_that_never_settles_is_given_up_after_a_bounded_number_of_tries(
    task: Task,
) -> None:  # G31
    folder = make_database(task / "rocksdb/counts", 500)
    _tables(folder)[0].unlink()
    pauses = []

    def keep_changing(seconds: float) -> None:
        pauses.append(seconds)
        (folder / f"{900000 + len(pauses)}.sst").write_bytes(b"new")

    backend = RocksDBBackend(
        RocksDBBackend.Options(max_attempts=6), sleep=keep_changing, draw=lambda: 0.5
    )
    with pytest.raises(StoreChangedError, match="kept changing"):
        _names(task, "rocksdb/counts", backend)
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.16]


def test_a_task_that_is_removed_while_it_is_read_is_no_empty_capture(task: Task) -> None:  # G32
    folder = make_database(task / "rocksdb/counts", 500)
    _tables(folder)[0].unlink()
    backend = RocksDBBackend(sleep=lambda _: shutil.rmtree(task))
    with pytest.raises(StoreChangedError, match="was removed"):
        _names(task, "rocksdb/counts", backend)


def test_copies_may_be_staged_on_another_file_system(task: Task, tmp_path: Path) -> None:  # G33
    make_database(task / "rocksdb/counts", 500)
    with TemporaryDirectory(prefix="snapstore-staging-", dir="/dev/shm") as staging:
        assert Path(staging).stat().st_dev != task.stat().st_dev
        backend = RocksDBBackend(
            RocksDBBackend.Options(copy_tables=True, staging_dir=staging, min_free_bytes=0)
        )
        with backend.capture(locate(task, "rocksdb/counts")) as capture:
            assert list(Path(staging).iterdir())
            materialise(capture, tmp_path / "copy")
        assert list(Path(staging).iterdir()) == []
    raw = raw_contents(tmp_path / "copy/rocksdb/counts", tmp_path)
    assert raw["default"] == replay({}, 0, 500)


@pytest.mark.parametrize("copy_tables", [False, True])
def test_a_capture_gives_up_before_the_disk_is_full(task: Task, copy_tables: bool) -> None:
    make_database(task / "rocksdb/counts", 500)
    before = look_of(task)
    backend = RocksDBBackend(
        RocksDBBackend.Options(copy_tables=copy_tables, min_free_bytes=1 << 60)
    )
    with pytest.raises(NoSpaceError):
        _names(task, "rocksdb/counts", backend)
    assert look_of(task) == before


def test_a_link_to_the_store_is_followed(task: Task, tmp_path: Path) -> None:  # G21
    make_database(tmp_path / "fast/counts", 500)
    (task / "rocksdb").mkdir()
    (task / "rocksdb/counts").symlink_to(tmp_path / "fast/counts")
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        assert all(file.name.startswith("rocksdb/counts/") for file in capture.files)
        materialise(capture, tmp_path / "copy")
    raw = raw_contents(tmp_path / "copy/rocksdb/counts", tmp_path)
    assert raw["default"] == replay({}, 0, 500)


def test_a_link_that_leads_nowhere_is_not_found(task: Task, tmp_path: Path) -> None:  # G21
    (task / "counts").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreNotFoundError):
        _names(task, "counts")


def test_a_link_that_leads_to_itself_is_refused(task: Task) -> None:  # G21
    (task / "counts").symlink_to("counts")
    with pytest.raises(CaptureError, match="counts cannot be listed"):
        _names(task, "counts")


def test_a_staging_folder_that_is_not_there_is_named(task: Task, tmp_path: Path) -> None:
    make_database(task / "rocksdb/counts", 10)
    backend = RocksDBBackend(RocksDBBackend.Options(staging_dir=str(tmp_path / "none")))
    with pytest.raises(CaptureError, match="No such file") as caught:
        _names(task, "rocksdb/counts", backend)
    assert "staging_dir" in (caught.value.hint or "")


def test_blob_files_are_refused_by_name(task: Task) -> None:
    folder = make_database(task / "rocksdb/counts", 10)
    (folder / "000077.blob").write_bytes(b"values")
    with pytest.raises(CaptureError, match="blob files"):
        _names(task, "rocksdb/counts")


def test_a_write_ahead_log_in_another_folder_is_refused(task: Task) -> None:
    folder = make_database(task / "rocksdb/counts", 10)
    options = max(folder.glob("OPTIONS-*"))
    options.write_text(options.read_text().replace("[DBOptions]", "[DBOptions]\n  wal_dir=/wal"))
    with pytest.raises(CaptureError, match="write-ahead log"):
        _names(task, "rocksdb/counts")


def test_a_named_pipe_in_place_of_a_table_does_not_hang(task: Task) -> None:
    folder = make_database(task / "rocksdb/counts", 10)
    os.mkfifo(folder / "000099.sst")
    with pytest.raises(CaptureError, match="not a file"):
        _names(task, "rocksdb/counts")


def test_side_files_are_captured_and_missing_ones_left_out(task: Task) -> None:
    make_database(task / "rocksdb/counts", 10)
    (task / "counts.position").write_text("0\n1\nin 0 9\n")
    location = msgspec.structs.replace(
        locate(task, "rocksdb/counts"), side_files=("counts.position", "other.position")
    )
    with RocksDBBackend().capture(location) as capture:
        side = [file for file in capture.files if "/" not in file.name]
        assert [file.name for file in side] == ["counts.position"]
        assert side[0].inline
        assert side[0].source.pread(100, 0) == b"0\n1\nin 0 9\n"


def test_nothing_can_be_read_after_a_release(task: Task) -> None:
    maker = RocksDBMaker(task)
    make_database(task / "rocksdb/counts", 10)
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        table = next(file for file in capture.files if file.name.endswith(".sst"))
        capture.release(table)
        with pytest.raises(CaptureError, match="released"):
            table.source.pread(1, 0)
        with pytest.raises(CaptureError, match="released"):
            maker.applied(capture.view)


def test_a_scan_that_is_cut_off_by_a_release_does_not_look_like_the_end(task: Task) -> None:
    make_database(task / "rocksdb/counts", 10)
    with RocksDBBackend().capture(locate(task, "rocksdb/counts")) as capture:
        pairs = capture.view.scan("rocksdb/counts", "default")
        next(pairs)
        capture.release(next(file for file in capture.files if file.name.endswith(".sst")))
        with pytest.raises(CaptureError, match="released"):
            list(pairs)


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a\x7fb"])
def test_a_segment_with_a_hostile_name_is_refused(task: Task, name: str) -> None:
    make_database(task / "window" / name, 10)
    with pytest.raises(UnsafePathError):
        _names(task, "window")


def test_an_unknown_folder_in_a_store_is_refused_by_name(task: Task) -> None:
    make_database(task / "window/window.1000", 10)
    (task / "window/notes").mkdir()
    (task / "window/notes/readme").write_text("mine")
    with pytest.raises(CaptureError, match="window/notes"):
        _names(task, "window")

"""Captures of RocksDB while another process writes, flushes and compacts."""

import shutil
import time
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.model.store import CapturedFile
from snapstore.testing.backend_contract import materialise, replay
from tests.support.rocksdb import LOGGED, UNLOGGED, RocksDBMaker, Shape

_SMALL = 8 << 10
PATIENT = RocksDBBackend.Options(max_attempts=1000, retry_seconds=0.001)
"""On a busy machine an attempt may take longer than these writers need for the next change."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(UNLOGGED, id="flushed together, without log"),
        pytest.param(LOGGED, id="three families with a log"),
        pytest.param(
            Shape(memtable_bytes=_SMALL, manifest_bytes=2 << 10), id="a new MANIFEST all the time"
        ),
        pytest.param(
            Shape(log=True, families=("default", "second"), memtable_bytes=_SMALL, flush_every=3),
            id="logs that come and go",
        ),
    ],
)
def test_every_capture_of_a_busy_store_holds_exactly_what_it_notes(
    tmp_path: Path, shape: Shape
) -> None:
    maker = RocksDBMaker(tmp_path / "work", shape)
    backend = RocksDBBackend(PATIENT)
    noted: list[int] = []
    target = tmp_path / "copy"
    with maker.writing(tmp_path / "0_0") as live:
        deadline = time.monotonic() + 300
        while len(noted) < 60 or len(set(noted)) <= 10:
            assert time.monotonic() < deadline, "nothing was flushed meanwhile"
            with backend.capture(live.location) as capture:
                seen = (maker.applied(capture.view), maker.contents(capture.view))
                materialise(capture, target)
            with backend.open_view(target, live.location.root) as view:
                assert (maker.applied(view), maker.contents(view)) == seen
            applied, contents = seen
            assert applied is not None
            assert applied <= live.begun()
            assert contents == replay({}, 0, applied)
            noted.append(applied)
            shutil.rmtree(target)
    assert noted == sorted(noted)


def test_tables_that_die_during_a_capture_come_first_and_are_read_to_the_end(
    tmp_path: Path,
) -> None:
    maker = RocksDBMaker(tmp_path / "work", Shape(memtable_bytes=_SMALL))
    target = tmp_path / "copy"
    with (
        maker.writing(tmp_path / "0_0") as live,
        RocksDBBackend(PATIENT).capture(live.location) as held,
    ):
        applied = maker.applied(held.view)
        tables = [file.name for file in held.files if file.name.endswith(".sst")]
        _wait_until_all_are_gone(tmp_path / "0_0", tables)
        materialise(held, target)
    with RocksDBBackend().open_view(target, live.location.root) as view:
        assert applied is not None
        assert maker.applied(view) == applied
        assert maker.contents(view) == replay({}, 0, applied)


def test_a_table_that_was_deleted_before_the_capture_was_complete_is_uploaded_first(
    tmp_path: Path,
) -> None:
    maker = RocksDBMaker(tmp_path / "work", Shape(memtable_bytes=_SMALL))
    order: list[tuple[CapturedFile, ...]] = []
    with maker.writing(tmp_path / "0_0") as live:
        deadline = time.monotonic() + 300
        while not order and time.monotonic() < deadline:
            with RocksDBBackend(PATIENT).capture(live.location) as held:
                gone = [file for file in held.files if not (tmp_path / "0_0" / file.name).exists()]
                if gone and held.files[0] in gone:
                    order.append(held.files)
    assert order, "no table died during a capture"


def test_a_held_lock_does_not_stop_a_capture_and_stays_held(tmp_path: Path) -> None:
    maker = RocksDBMaker(tmp_path / "work")
    with maker.writing(tmp_path / "0_0") as live:
        lock = (live.location.path / "LOCK").stat()
        with RocksDBBackend(PATIENT).capture(live.location) as held:
            assert not any(file.name.endswith("LOCK") for file in held.files)
        begun = live.begun()
        live.wait_begun(begun + 200)
        assert (live.location.path / "LOCK").stat().st_ino == lock.st_ino


def _wait_until_all_are_gone(task_dir: Path, names: list[str]) -> None:
    deadline = time.monotonic() + 300
    while any((task_dir / name).exists() for name in names):
        assert time.monotonic() < deadline
        time.sleep(0.02)

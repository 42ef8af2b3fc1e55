"""Stores of several databases, one for each segment: G17."""

import shutil
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import SourceDamagedError, StoreChangedError
from snapstore.testing.backend_contract import materialise, replay
from tests.support.rocksdb import NOTED, OFFSETS, Store, locate, make_database

ROOT = "window"
DAYS = (1000, 2000, 3000)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    for index, day in enumerate(DAYS):
        make_database(_segment(tmp_path / "0_0", day), 100 * (index + 1))
    return tmp_path / "0_0"


def _segment(task: Path, day: int) -> Path:
    return task / ROOT / f"window.{day}"


def _databases(task: Path, backend: RocksDBBackend) -> tuple[str, ...]:
    with backend.capture(locate(task, ROOT)) as capture:
        return capture.view.databases


def _break(task: Path, day: int) -> None:
    min(_segment(task, day).glob("*.sst")).unlink()


def test_every_segment_is_a_database_with_its_own_number(task: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    with RocksDBBackend().capture(locate(task, ROOT)) as capture:
        materialise(capture, target)
    with RocksDBBackend().open_view(target, ROOT) as view:
        assert view.databases == tuple(f"{ROOT}/window.{day}" for day in DAYS)
        for index, database in enumerate(view.databases):
            applied = 100 * (index + 1)
            assert view.entries(database, OFFSETS) == {NOTED: applied.to_bytes(8, "big")}
            assert dict(view.scan(database, "default")) == replay({}, 0, applied)


def test_a_segment_that_expires_as_a_whole_may_be_absent(task: Path) -> None:
    _break(task, 1000)
    backend = RocksDBBackend(sleep=lambda _: shutil.rmtree(_segment(task, 1000)))
    assert _databases(task, backend) == (f"{ROOT}/window.2000", f"{ROOT}/window.3000")


@pytest.mark.parametrize("day", [2000, 3000])
def test_a_segment_that_vanishes_before_an_older_one_has_not_expired(task: Path, day: int) -> None:
    """The store is being removed: what was held of it must not pass for all of it."""
    _break(task, day)
    backend = RocksDBBackend(sleep=lambda _: shutil.rmtree(_segment(task, day)))
    with pytest.raises(StoreChangedError, match=f"{day} was removed"):
        _databases(task, backend)


def test_a_store_that_is_removed_when_one_segment_is_held_is_no_capture(task: Path) -> None:
    _break(task, 2000)
    backend = RocksDBBackend(sleep=lambda _: shutil.rmtree(task / ROOT))
    with pytest.raises(StoreChangedError, match="was removed"):
        _databases(task, backend)


def test_a_segment_that_appears_meanwhile_is_captured_too(task: Path) -> None:
    table = min(_segment(task, 2000).glob("*.sst"))
    aside = table.rename(task / "aside")

    def go_on(seconds: float) -> None:
        aside.rename(table)
        make_database(_segment(task, 4000), 10)

    assert _databases(task, RocksDBBackend(sleep=go_on))[-1] == f"{ROOT}/window.4000"


def test_a_segment_that_is_removed_and_made_again_is_not_left_out(task: Path) -> None:
    _break(task, 2000)
    folder = _segment(task, 2000)
    aside = make_database(task / "aside", 10)

    def remove_and_make_again(seconds: float) -> None:
        if aside.exists():
            shutil.rmtree(folder)
            aside.rename(folder)

    databases = _databases(task, RocksDBBackend(sleep=remove_and_make_again))
    assert databases == tuple(f"{ROOT}/window.{day}" for day in DAYS)


def test_a_segment_without_current_fails_the_store(task: Path) -> None:
    (_segment(task, 2000) / "CURRENT").unlink()
    with pytest.raises(SourceDamagedError, match=r"window\.2000/CURRENT"):
        _databases(task, RocksDBBackend())


def test_a_segment_that_is_an_empty_folder_is_waited_for_and_never_left_out(task: Path) -> None:
    _segment(task, 4000).mkdir()
    with pytest.raises(StoreChangedError, match=r"window\.4000"):
        _databases(task, RocksDBBackend())
    patient = RocksDBBackend(sleep=lambda _: Store(_segment(task, 4000)).close())
    assert _databases(task, patient)[-1] == f"{ROOT}/window.4000"


def test_a_store_whose_segments_all_vanish_is_no_empty_capture(task: Path) -> None:
    for day in DAYS:
        _break(task, day)
    backend = RocksDBBackend(sleep=lambda _: shutil.rmtree(task / ROOT))
    with pytest.raises(StoreChangedError, match="was removed"):
        _databases(task, backend)

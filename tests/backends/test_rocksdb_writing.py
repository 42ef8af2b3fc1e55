"""Notes are written into staged databases; nothing else there changes."""

import fcntl
import hashlib
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import CaptureError
from snapstore.testing.backend_contract import replay
from tests.support.fixtures import FIXTURES, FixtureName, expected, unpack
from tests.support.rocksdb import LOGGED, OFFSETS, RocksDBMaker, Store, make_database, raw_contents

_ENTRIES = {b"topic-0": (7).to_bytes(8, "big"), b"other-0": None}


def _tables(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.sst")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXTURES)
def test_no_table_of_kafka_streams_is_rewritten(name: FixtureName, tmp_path: Path) -> None:
    application = unpack(name, tmp_path / "state")
    for relative in expected(name).rocksdb:
        folder = application / relative
        tables = _tables(folder)
        before = raw_contents(folder, tmp_path)
        RocksDBBackend().write_entries(folder, OFFSETS, _ENTRIES)
        assert tables.items() <= _tables(folder).items()
        assert len(_tables(folder)) == len(tables) + 1
        after = raw_contents(folder, tmp_path)
        assert after.pop(OFFSETS) == {**before.pop(OFFSETS, {}), b"topic-0": _ENTRIES[b"topic-0"]}
        assert after == before


def test_what_opening_leaves_behind_is_removed(tmp_path: Path) -> None:
    folder = make_database(tmp_path / "counts", 500)
    for path in folder.iterdir():
        if path.name.startswith(("LO", "IDENTITY", "rocksdict")) or path.suffix == ".log":
            path.unlink()
    RocksDBBackend().write_entries(folder, OFFSETS, _ENTRIES)
    left = {path.name for path in folder.iterdir()}
    assert not left & {"LOCK", "LOG", "rocksdict-config.json"}
    assert not [name for name in left if name.endswith(".log")]
    assert raw_contents(folder, tmp_path)["default"] == replay({}, 0, 500)


def test_the_lock_is_free_afterwards(tmp_path: Path) -> None:
    folder = make_database(tmp_path / "counts", 500)
    RocksDBBackend().write_entries(folder, OFFSETS, _ENTRIES)
    with (folder / "LOCK").open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    Store(folder).close()


def test_records_that_were_only_in_the_log_are_kept(tmp_path: Path) -> None:
    maker = RocksDBMaker(tmp_path / "work", LOGGED)
    with maker.writing(tmp_path / "0_0") as live:
        live.crash()
        folder = live.location.path
    with RocksDBBackend().open_view(tmp_path / "0_0", live.location.root) as view:
        before = (maker.applied(view), maker.contents(view))
    RocksDBBackend().write_entries(folder, OFFSETS, _ENTRIES)
    with RocksDBBackend().open_view(tmp_path / "0_0", live.location.root) as view:
        assert (maker.applied(view), maker.contents(view)) == before


def test_a_database_that_an_application_has_open_is_not_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "counts")
    with pytest.raises(CaptureError, match="cannot be written"):
        RocksDBBackend().write_entries(tmp_path / "counts", OFFSETS, _ENTRIES)
    store.close()


def test_a_folder_without_a_database_is_not_made_into_one(tmp_path: Path) -> None:
    with pytest.raises(CaptureError):
        RocksDBBackend().write_entries(tmp_path, OFFSETS, _ENTRIES)
    assert list(tmp_path.iterdir()) == []

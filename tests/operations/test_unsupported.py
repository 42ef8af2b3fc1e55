"""A database that only its application can open is no damaged one."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import DBPath, Options, PlainTableFactoryOptions, Rdict, SliceTransform, WriteOptions

from snapstore import client
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.cli.mends import prepared_lines
from snapstore.cli.verdicts import exit_code_of
from snapstore.errors import SourceDamagedError, StoreUnsupportedError
from snapstore.model.verdict import Verdict
from snapstore.operations.fsck import FsckOptions, fsck
from snapstore.operations.mend import mend
from snapstore.operations.prepare import PrepareReport
from tests.support.fixtures import unpack_custom
from tests.support.mend_lab import ports
from tests.support.restore_lab import tree
from tests.support.rocksdb import locate
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, make_window, some_pairs

ROOT = "rocksdb/counts"


def reverse(folder: Path) -> str:
    unpack_custom("reverse", folder)
    return "ordered by the comparator rocksdb.ReverseBytewiseComparator"


def written(folder: Path, options: Options, *, rounds: int = 1) -> None:
    """Make a table in each round; the first two are compacted to one where there are three."""
    options.create_if_missing(True)
    rdict = Rdict(str(folder), options, {"default": options})
    unlogged = WriteOptions()
    unlogged.disable_wal = True  # type: ignore[method-assign,assignment]
    for number in range(rounds):
        for key, value in some_pairs(50, start=number * 10).items():
            rdict.put(key, value, unlogged)
        rdict.flush()
        deadline = time.monotonic() + 60
        while number == 1 and len(rdict.live_files()) > 1:
            assert time.monotonic() < deadline, "RocksDB does not compact"
            time.sleep(0.01)
    rdict.close()


def plain_tables(folder: Path) -> str:
    options = Options(raw_mode=True)
    options.set_plain_table_factory(PlainTableFactoryOptions())
    options.set_prefix_extractor(SliceTransform.create_fixed_prefix(3))
    written(folder, options)
    return "its tables are of the format PlainTable"


def tables_elsewhere(folder: Path) -> str:
    other = folder.parents[4] / "other"
    options = Options(raw_mode=True)
    options.set_db_paths([DBPath(str(other), 1 << 30)])
    written(folder, options)
    return f"its tables lie in {other} (db_paths)"


def tables_elsewhere_without_log(folder: Path) -> str:
    """As Kafka Streams leaves it: its RocksDB writes no line into LOG."""
    tables_elsewhere(folder)
    (folder / "LOG").write_bytes(b"")
    return "its tables (db_paths), lie in other folders"


def some_tables_elsewhere(folder: Path) -> str:
    options = Options(raw_mode=True)
    own, other = folder, folder.parents[4] / "other"
    options.set_db_paths([DBPath(str(own), 1), DBPath(str(other), 1 << 30)])
    options.set_level_zero_file_num_compaction_trigger(2)
    written(folder, options, rounds=3)
    assert [*folder.glob("*.sst")]
    assert [*other.glob("*.sst")]
    (folder / "LOG").write_bytes(b"")
    return "some of its tables lie in other folders (db_paths)"


def encrypted(folder: Path) -> str:
    make_key_value(folder.parents[3], "0_0", "counts", Pairs(pairs={b"k": b"v"}, applied_offset=9))
    for file in folder.iterdir():
        file.write_bytes(bytes(byte ^ 0xA5 for byte in bytes(4096) + file.read_bytes()))
    return "its files seem to be encrypted"


MAKERS = (
    *(reverse, plain_tables, encrypted),
    *(tables_elsewhere, tables_elsewhere_without_log, some_tables_elsewhere),
)


@pytest.mark.parametrize("make", MAKERS)
def test_h06_what_only_the_application_can_open_is_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    state_dir = tmp_path / "state"
    folder = state_dir / APPLICATION / "0_0" / ROOT
    folder.parent.mkdir(parents=True)
    reason = make(folder)
    before = tree(tmp_path)
    (verdict,) = fsck(state_dir, ports(), FsckOptions()).verdicts
    assert (verdict.kind, verdict.cause) == ("unknown", "unsupported")
    assert reason in verdict.reason
    assert exit_code_of(verdict.kind) == 3
    report = mend(state_dir, ports(), FsckOptions())
    assert not report.tasks
    assert [each.store for each in report.plan.left] == [verdict.store]
    prepared = client.prepare(state_dir, application=APPLICATION)
    assert isinstance(prepared, PrepareReport)
    text = "\n".join(prepared_lines(prepared.stores))
    assert "starts as it is, not looked into" in text
    assert "which is no damage" in text
    assert exit_code_of(prepared.worst_seen) == 0
    assert tree(tmp_path) == before


@pytest.mark.parametrize("make", MAKERS)
def test_h06_no_snapshot_is_taken_of_it_and_the_reason_is_named(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    task = tmp_path / "state" / APPLICATION / "0_0"
    (task / ROOT).parent.mkdir(parents=True)
    reason = make(task / ROOT)
    with (
        pytest.raises(StoreUnsupportedError) as caught,
        RocksDBBackend().capture(locate(task, ROOT)),
    ):
        pass
    assert reason in caught.value.message or "(db_paths), lie in other folders" in str(caught.value)
    assert "--from-changelog" in str(caught.value.hint)


def test_h06_values_of_a_merge_operator_are_no_damage(tmp_path: Path) -> None:
    folder = unpack_custom("merge", tmp_path / "state" / APPLICATION / "0_0" / ROOT)
    state_dir = folder.parents[3]

    def look(scan: bool) -> Verdict:
        (verdict,) = fsck(state_dir, ports(), FsckOptions(scan=scan)).verdicts
        return verdict

    assert look(scan=False).kind == "clean"
    assert look(scan=True).cause == "unsupported"
    assert "merge_operator_ must be set" in look(scan=True).reason
    assert not mend(state_dir, ports(), FsckOptions(scan=True)).tasks


@pytest.mark.parametrize("log", [b"", None])
def test_h06_a_table_that_is_missing_from_its_own_folder_is_damage(
    tmp_path: Path, log: bytes | None
) -> None:
    folder = make_key_value(
        tmp_path, "0_0", "counts", Pairs(pairs=some_pairs(90), applied_offset=9)
    )
    if log is not None:
        (folder / "LOG").write_bytes(log)
    min(folder.glob("*.sst")).unlink()
    with pytest.raises(SourceDamagedError), RocksDBBackend().open_view(folder.parents[1], ROOT):
        pass


def test_h06_all_that_prepare_sets_aside_is_told_even_where_nothing_else_is_left(
    tmp_path: Path,
) -> None:
    make_window(tmp_path, "0_0", "window", {0: Pairs(pairs={b"k": b"v"}, applied_offset=9)})
    (tmp_path / APPLICATION / "0_0" / "window" / "window.86400000").mkdir()
    report = client.prepare(tmp_path, application=APPLICATION)
    assert isinstance(report, PrepareReport)
    text = "\n".join(prepared_lines(report.stores))
    (kept,) = (tmp_path / APPLICATION / ".snapstore" / "quarantine").iterdir()
    assert "its files are set aside" in text.replace("\n", " ")
    assert kept.name in text
    assert "there is nothing on the disk" not in text

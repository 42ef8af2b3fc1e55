"""Every planted fault is found and named; a healthy directory is told to be healthy."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import StoreNotFoundError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.report import Event
from snapstore.model.verdict import Verdict
from snapstore.operations.fsck import FsckOptions, FsckPorts, fsck
from snapstore.operations.fsck_report import FsckReport
from tests.support.fixtures import unpack
from tests.support.restore_lab import tree
from tests.support.state_dirs import holding_locks, write_checkpoint
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
    topic,
)

DAY_MS = 86_400_000


def look(state_dir: Path, options: FsckOptions | None = None) -> FsckReport:
    """Run fsck, and see that it has written nothing."""
    before = tree(state_dir)
    events: list[Event] = []
    ports = FsckPorts(
        inspector=KafkaStreamsLayout(),
        backends={"rocksdb": RocksDBBackend()},
        clock=lambda: datetime.now(UTC),
        listener=events.append,
    )
    report = fsck(state_dir, ports, options or FsckOptions())
    assert tree(state_dir) == before
    return report


def verdict_on(report: FsckReport, store: str, task: str = "0_0") -> Verdict:
    (found,) = [
        each for each in report.verdicts if (each.store.store, each.store.task) == (store, task)
    ]
    return found


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Two tasks that were closed cleanly: a key-value store and a window store of two segments."""
    for task in ("0_0", "0_1"):
        make_key_value(tmp_path, task, "counts", Pairs(pairs=some_pairs(900), applied_offset=99))
        make_window(
            tmp_path,
            task,
            "window",
            {
                day * DAY_MS: Pairs(pairs=some_pairs(300, start=day * 1000), applied_offset=99)
                for day in (1, 2)
            },
        )
    return tmp_path


def segment(state_dir: Path, day: int, task: str = "0_0") -> Path:
    return state_dir / APPLICATION / task / "window" / f"window.{day * DAY_MS}"


def counts(state_dir: Path) -> Path:
    return state_dir / APPLICATION / "0_0" / "rocksdb" / "counts"


def test_a_closed_directory_starts_clean(state_dir: Path) -> None:
    report = look(state_dir)
    assert [verdict.kind for verdict in report.verdicts] == ["clean"] * 4
    assert report.worst == "clean"
    assert not report.notes


@pytest.mark.parametrize("name", ["ks440-alos", "ks400-eos"])
def test_real_directories_that_were_closed_lose_nothing(tmp_path: Path, name: str) -> None:
    unpack(name, tmp_path)  # type: ignore[arg-type]
    report = look(tmp_path, FsckOptions(scan=True))
    assert {verdict.kind for verdict in report.verdicts} <= {"clean", "replays"}
    assert report.scanned_pairs is not None
    assert report.scanned_pairs > 1000


def test_a_real_hot_copy_would_lose_rows_of_its_window_stores(tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path)
    lossy = [verdict for verdict in look(tmp_path).verdicts if verdict.kind == "loses_rows"]
    assert {verdict.store.store for verdict in lossy} == {"session", "window"}
    assert {verdict.cause for verdict in lossy} == {"unflushed"}


def test_segments_of_unequal_offsets_are_told_apart_by_version(state_dir: Path) -> None:
    make_window(
        state_dir, "0_0", "window", {1 * DAY_MS: Pairs(pairs={b"k": b"v"}, applied_offset=140)}
    )
    assert verdict_on(look(state_dir, FsckOptions(version="4.3.1")), "window").kind == "clean"
    verdict = verdict_on(look(state_dir, FsckOptions(version="4.3.0")), "window")
    assert (verdict.kind, verdict.cause, verdict.skipped) == ("loses_rows", "uneven", 41)
    assert verdict_on(look(state_dir), "window").assumed == "Kafka Streams 4.3.0"


def test_a_version_to_4_2_cannot_open_databases_of_4_3(state_dir: Path) -> None:
    report = look(state_dir, FsckOptions(version="4.2.1"))
    assert {(verdict.kind, verdict.cause) for verdict in report.verdicts} == {
        ("refuses", "version")
    }


def remove_a_table(state_dir: Path) -> str:
    table = max(counts(state_dir).glob("*.sst"), key=lambda path: path.stat().st_size)
    table.unlink()
    return table.name


def cut_a_table(state_dir: Path) -> str:
    table = max(segment(state_dir, 2).glob("*.sst"), key=lambda path: path.stat().st_size)
    with table.open("r+b") as file:
        file.truncate(37)
    return table.name


def cut_the_manifest(state_dir: Path) -> str:
    (manifest,) = counts(state_dir).glob("MANIFEST-*")
    with manifest.open("r+b") as file:
        file.truncate(30)
    return manifest.name


def let_current_dangle(state_dir: Path) -> str:
    (counts(state_dir) / "CURRENT").write_text("MANIFEST-009999\n")
    return "MANIFEST-009999"


def empty_current(state_dir: Path) -> str:
    (counts(state_dir) / "CURRENT").write_bytes(b"")
    return "CURRENT"


def remove_current(state_dir: Path) -> str:
    (segment(state_dir, 1) / "CURRENT").unlink()
    return "CURRENT"


def put_a_stranger_into_a_store(state_dir: Path) -> str:
    (state_dir / APPLICATION / "0_0" / "window" / "notes.txt").write_text("mine")
    return "notes.txt"


@pytest.mark.parametrize(
    "plant",
    [
        remove_a_table,
        cut_a_table,
        cut_the_manifest,
        let_current_dangle,
        empty_current,
        remove_current,
        put_a_stranger_into_a_store,
    ],
    ids=lambda plant: plant.__name__,
)
def test_a_broken_store_is_damage_and_named(state_dir: Path, plant: Callable[[Path], str]) -> None:
    named = plant(state_dir)
    report = look(state_dir)
    damaged = [verdict for verdict in report.verdicts if verdict.kind != "clean"]
    (verdict,) = damaged
    assert (verdict.kind, verdict.cause) == ("damaged", "file")
    assert named in verdict.reason


def test_a_flipped_block_is_found_by_reading_every_block(state_dir: Path) -> None:
    table = max(counts(state_dir).glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(table.read_bytes())
    content[100] ^= 0xFF
    table.write_bytes(content)
    assert look(state_dir).worst == "clean"
    verdict = verdict_on(look(state_dir, FsckOptions(scan=True)), "counts")
    assert verdict.kind == "damaged"
    assert table.name in verdict.reason


def test_a_database_without_current_begins_empty(state_dir: Path) -> None:
    remove_current(state_dir)
    assert "empty database" in verdict_on(look(state_dir), "window").reason


def test_a_segment_whose_files_were_not_made_yet_was_never_flushed(state_dir: Path) -> None:
    segment(state_dir, 3).mkdir()
    verdict = verdict_on(look(state_dir), "window")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "unflushed")


def test_a_line_without_files_is_named_with_its_store(state_dir: Path) -> None:
    write_checkpoint(state_dir / APPLICATION / "0_0", f"{topic('gone')} 0 1234")
    verdict = verdict_on(look(state_dir), "gone")
    assert (verdict.kind, verdict.cause, verdict.resume_offset) == ("loses_rows", "no_files", 1235)


def test_a_task_that_holds_nothing_but_a_line_is_looked_at(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / APPLICATION / "0_7", f"{topic('counts')} 7 5")
    verdict = verdict_on(look(tmp_path), "counts", "0_7")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "no_files")


def test_a_checkpoint_of_another_task_beside_files_of_4_3_is_told(state_dir: Path) -> None:
    write_checkpoint(state_dir / APPLICATION / "0_0", f"{topic('counts')} 1 1234")
    report = look(state_dir)
    assert report.worst == "clean"
    assert f"{topic('counts')}:1" in report.notes[0]


def test_a_line_of_a_store_of_another_sub_topology_is_foreign(state_dir: Path) -> None:
    make_key_value(state_dir, "1_0", "totals", Pairs(pairs=some_pairs(10), applied_offset=9))
    write_checkpoint(state_dir / APPLICATION / "0_0", f"{topic('totals')} 0 9")
    report = look(state_dir)
    assert report.worst == "clean"
    assert topic("totals") in report.notes[0]


def test_files_of_another_task_are_found_by_what_they_note(state_dir: Path) -> None:
    application = state_dir / APPLICATION
    shutil.rmtree(application / "0_0")
    shutil.copytree(application / "0_1", application / "0_0")
    report = look(state_dir, FsckOptions(guarantee="at_least_once"))
    assert {verdict_on(report, name).cause for name in ("counts", "window")} == {"foreign"}
    assert verdict_on(report, "counts", "0_1").kind == "clean"


def test_a_directory_of_4_2_with_the_checkpoint_of_another_task(tmp_path: Path) -> None:
    home = unpack("ks400-eos", tmp_path)
    shutil.copy(home / "0_1" / ".checkpoint", home / "0_0" / ".checkpoint")
    alos = look(tmp_path, FsckOptions(guarantee="at_least_once", tasks=("0_0",)))
    assert {verdict.cause for verdict in alos.verdicts} == {"foreign"}
    eos = look(tmp_path, FsckOptions(guarantee="exactly_once_v2", tasks=("0_0",)))
    assert {verdict.kind for verdict in eos.verdicts} == {"wipes"}


def test_a_checkpoint_that_cannot_be_read_stops_the_application(tmp_path: Path) -> None:
    home = unpack("ks400-eos", tmp_path)
    (home / "0_0" / ".checkpoint").write_text("1\n0\n")
    report = look(tmp_path, FsckOptions(tasks=("0_0",)))
    assert {(verdict.kind, verdict.cause) for verdict in report.verdicts} == {
        ("damaged", "offset_file")
    }
    assert ".checkpoint has version 1" in report.verdicts[0].reason


def test_a_half_written_offset_file_is_a_leftover(state_dir: Path) -> None:
    (state_dir / APPLICATION / "0_0" / ".checkpoint.tmp").write_text("0\n1\nT 8 9")
    report = look(state_dir)
    assert report.worst == "clean"
    assert ".checkpoint.tmp" in report.notes[0]


def test_names_that_fit_nothing_are_refused(state_dir: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no task called '0_9'"):
        look(state_dir, FsckOptions(tasks=("0_9",)))
    with pytest.raises(StoreNotFoundError, match="no store called 'count'"):
        look(state_dir, FsckOptions(stores=("count",)))


def test_only_what_is_named_is_judged(state_dir: Path) -> None:
    report = look(state_dir, FsckOptions(tasks=("0_1",), stores=("counts",)))
    assert [str(verdict.store) for verdict in report.verdicts] == ["orders/0_1/counts"]


def test_a_running_application_is_looked_at_and_told(state_dir: Path) -> None:
    lock = state_dir / APPLICATION / ".lock"
    lock.touch()
    with holding_locks([lock]):
        report = look(state_dir, FsckOptions(scan=True))
    assert all(task.running for task in report.tasks)
    assert report.worst == "clean"


def test_a_read_only_directory_can_be_looked_at(state_dir: Path) -> None:
    for path in [state_dir, *state_dir.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        assert look(state_dir).worst == "clean"
    finally:
        for path in [state_dir, *state_dir.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)


def test_h14_a_folder_beside_the_tasks_that_is_none_is_told_once(state_dir: Path) -> None:
    (state_dir / APPLICATION / "__topo__0_1").mkdir()
    (note,) = look(state_dir).notes
    assert note.endswith("__topo__0_1: no task has such a name: left out")

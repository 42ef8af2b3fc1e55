"""A directory that would lose rows is made safe; one that would not is not touched."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import ConfigError, SourceDamagedError, StoreInUseError, UnsafePathError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.operations.fsck import FsckOptions, fsck
from snapstore.operations.mend import MendReport, mend
from snapstore.operations.mend_plan import MendPlan, plan_mend
from tests.support.crash import kill_at, points_of
from tests.support.fixtures import unpack
from tests.support.mend_lab import DAY_MS, mend_all, ports, uneven_state
from tests.support.restore_lab import contents, tree
from tests.support.rocksdb import raw_contents
from tests.support.state_dirs import holding_locks, make_database, write_checkpoint
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_window,
    topic,
)

pytestmark = pytest.mark.slow

WORK = ".snapstore"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return uneven_state(tmp_path / "state")


def run(state_dir: Path, options: FsckOptions | None = None) -> MendReport:
    return mend(state_dir, ports(), options or FsckOptions())


def plan(state_dir: Path, options: FsckOptions | None = None) -> MendPlan:
    return plan_mend(fsck(state_dir, ports(), options or FsckOptions()))


def kinds(state_dir: Path) -> dict[str, str]:
    report = fsck(state_dir, ports(), FsckOptions())
    return {f"{each.store.task}/{each.store.store}": each.kind for each in report.verdicts}


def offsets(folder: Path, scratch: Path) -> dict[bytes, int]:
    """What the family `offsets` of one database holds, read without snapstore."""
    family = raw_contents(folder, scratch)["offsets"]
    return {
        key: int.from_bytes(value, "big", signed=True)
        for key, value in family.items()
        if key != b"status"
    }


def rows(state_dir: Path, scratch: Path) -> Mapping[str, object]:
    """All pairs of all databases but their offsets."""
    return {
        name: {family: pairs for family, pairs in found.items() if family != "offsets"}  # type: ignore[attr-defined]
        for name, found in contents(state_dir, scratch).items()
    }


def segment(state_dir: Path, day: int, task: str = "0_0") -> Path:
    return state_dir / APPLICATION / task / "window" / f"window.{day * DAY_MS}"


def test_the_least_offset_is_flushed_into_every_segment(state_dir: Path, tmp_path: Path) -> None:
    before = rows(state_dir, tmp_path / "before")
    tables = {path.name for path in segment(state_dir, 2).glob("*.sst")}
    assert kinds(state_dir)["0_0/window"] == "loses_rows"

    report = run(state_dir)

    (task,) = report.tasks
    (store,) = task.plan.stores
    assert (store.action, store.least) == (
        "note_least",
        {next(iter(store.least)): 40},
    )
    assert task.quarantine is None
    for day in (1, 2, 3):
        noted = offsets(segment(state_dir, day), tmp_path / f"day-{day}")
        assert noted == {f"{topic('window')}-0".encode(): 40}
    assert rows(state_dir, tmp_path / "after") == before
    assert tables <= {path.name for path in segment(state_dir, 2).glob("*.sst")}
    assert kinds(state_dir)["0_0/window"] == "clean"
    assert not (state_dir / APPLICATION / WORK).exists()


def test_mending_twice_changes_nothing_more(state_dir: Path) -> None:
    run(state_dir)
    after = tree(state_dir)
    assert run(state_dir).tasks == ()
    assert tree(state_dir) == after


def test_a_healthy_directory_is_not_touched(tmp_path: Path) -> None:
    unpack("ks440-alos", tmp_path)
    before = tree(tmp_path)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert run(tmp_path).tasks == ()
    assert tree(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times


def test_other_tasks_keep_their_directories(state_dir: Path) -> None:
    healthy = state_dir / APPLICATION / "0_1"
    inode = healthy.stat().st_ino
    run(state_dir)
    assert healthy.stat().st_ino == inode


def test_planning_writes_nothing(state_dir: Path) -> None:
    before = tree(state_dir)
    planned = plan(state_dir)
    assert [task.facts.task for task in planned.tasks] == ["0_0"]
    assert "the least offset 40 is noted in all 3 databases" in planned.tasks[0].stores[0].effect
    assert tree(state_dir) == before


def test_a_store_with_a_segment_never_flushed_is_set_aside_and_can_be_brought_back(
    state_dir: Path, tmp_path: Path
) -> None:
    segment(state_dir, 4).mkdir()
    window = state_dir / APPLICATION / "0_0" / "window"
    before = contents(window, tmp_path / "before")
    write_checkpoint(
        state_dir / APPLICATION / "0_0", f"{topic('window')} 0 30", f"{topic('counts')} 0 99"
    )

    (task,) = run(state_dir).tasks

    assert [mend.action for mend in task.plan.stores] == ["set_aside"]
    assert not window.exists()
    assert task.quarantine is not None
    assert task.quarantine.is_relative_to(state_dir / APPLICATION / WORK / "quarantine")
    shutil.copytree(task.quarantine / "0_0" / "window", tmp_path / "kept")
    assert contents(tmp_path / "kept", tmp_path / "raw") == before
    assert (tmp_path / "kept" / f"window.{4 * DAY_MS}").is_dir()
    readme = (task.quarantine / "README.txt").read_text()
    assert f"cp -a {task.quarantine / '0_0'}/. {state_dir / APPLICATION / '0_0'}/" in readme
    assert "never noted an offset" in readme
    checkpoint = (state_dir / APPLICATION / "0_0" / ".checkpoint").read_text()
    assert topic("window") not in checkpoint
    assert topic("counts") in checkpoint
    assert kinds(state_dir) == {"0_0/counts": "clean", "0_1/counts": "clean", "0_1/window": "clean"}

    shutil.copytree(task.quarantine / "0_0", state_dir / APPLICATION / "0_0", dirs_exist_ok=True)
    assert contents(window, tmp_path / "back") == before


def test_a_line_without_files_is_removed_and_others_stay(state_dir: Path) -> None:
    task_dir = state_dir / APPLICATION / "0_1"
    write_checkpoint(task_dir, f"{topic('gone')} 1 7", f"{topic('counts')} 1 99")
    run(state_dir, FsckOptions(tasks=("0_1",)))
    assert (task_dir / ".checkpoint").read_text() == f"0\n1\n{topic('counts')} 1 99\n"
    assert kinds(state_dir)["0_1/counts"] == "clean"


def test_the_last_line_takes_the_file_along(state_dir: Path) -> None:
    task_dir = state_dir / APPLICATION / "0_1"
    write_checkpoint(task_dir, f"{topic('gone')} 1 7")
    run(state_dir, FsckOptions(tasks=("0_1",)))
    assert not (task_dir / ".checkpoint").exists()


def test_a_line_above_its_segments_is_lowered_into_them(state_dir: Path, tmp_path: Path) -> None:
    task_dir = state_dir / APPLICATION / "0_0"
    write_checkpoint(task_dir, f"{topic('window')} 0 80")
    run(state_dir)
    assert not (task_dir / ".checkpoint").exists()
    noted = offsets(segment(state_dir, 3), tmp_path / "raw")
    assert noted == {f"{topic('window')}-0".encode(): 40}


def test_an_offset_file_of_a_custom_store_without_files_is_removed(state_dir: Path) -> None:
    task_dir = state_dir / APPLICATION / "0_1"
    write_checkpoint(task_dir, f"{topic('mine')} 1 7", name=".checkpoint_mine")
    assert kinds(state_dir)["0_1/mine"] == "loses_rows"
    run(state_dir, FsckOptions(tasks=("0_1",)))
    assert not (task_dir / ".checkpoint_mine").exists()


def test_a_damaged_store_is_set_aside(state_dir: Path) -> None:
    (state_dir / APPLICATION / "0_1" / "rocksdb" / "counts" / "CURRENT").write_text("x")
    (task,) = run(state_dir, FsckOptions(tasks=("0_1",))).tasks
    assert [mend.action for mend in task.plan.stores] == ["set_aside"]
    assert kinds(state_dir) == {
        "0_0/counts": "clean",
        "0_0/window": "loses_rows",
        "0_1/window": "clean",
    }


def test_a_stranger_is_set_aside_and_its_store_stays(state_dir: Path) -> None:
    stranger = state_dir / APPLICATION / "0_1" / "window" / "notes.txt"
    stranger.write_text("mine")
    (task,) = run(state_dir, FsckOptions(tasks=("0_1",))).tasks
    assert task.quarantine is not None
    assert (task.quarantine / "0_1" / "window" / "notes.txt").read_text() == "mine"
    assert not stranger.exists()
    assert kinds(state_dir)["0_1/window"] == "clean"


OLD_NAMES = {1: "window:86400000", 2: "window-197001030000"}


def rename_to_old_names(state_dir: Path, task: str = "0_0") -> None:
    for day, name in OLD_NAMES.items():
        folder = segment(state_dir, day, task)
        folder.rename(folder.with_name(name))


def test_h63_segments_with_names_of_older_versions_are_mended_with_the_others(
    state_dir: Path, tmp_path: Path
) -> None:
    rename_to_old_names(state_dir)
    rename_to_old_names(state_dir, "0_1")
    before = rows(state_dir, tmp_path / "before")
    report = run(state_dir)
    (task,) = report.tasks
    assert [mend.action for mend in task.plan.stores] == ["note_least"]
    assert task.quarantine is None
    for name in (*OLD_NAMES.values(), f"window.{3 * DAY_MS}"):
        folder = segment(state_dir, 3).with_name(name)
        assert offsets(folder, tmp_path / name) == {f"{topic('window')}-0".encode(): 40}
    assert rows(state_dir, tmp_path / "after") == before
    assert set(kinds(state_dir).values()) == {"clean"}


@pytest.mark.parametrize("name", ["window.86400000.bak", "window_86400000"])
def test_h63_a_folder_with_rows_that_is_no_segment_takes_its_store_along(
    state_dir: Path, name: str
) -> None:
    folder = segment(state_dir, 1, "0_1")
    shutil.copytree(folder, folder.with_name(name))
    (task,) = run(state_dir, FsckOptions(tasks=("0_1",))).tasks
    assert [mend.action for mend in task.plan.stores] == ["set_aside"]
    assert not folder.parent.exists()
    assert task.quarantine is not None
    assert (task.quarantine / "0_1" / "window" / name / "CURRENT").exists()


def test_h63_two_folders_of_one_segment_are_told_and_set_aside(state_dir: Path) -> None:
    folder = segment(state_dir, 1, "0_1")
    shutil.copytree(folder, folder.with_name(OLD_NAMES[1]))
    options = FsckOptions(tasks=("0_1",))
    assert kinds(state_dir)["0_1/window"] == "damaged"
    (task,) = run(state_dir, options).tasks
    assert [mend.action for mend in task.plan.stores] == ["set_aside"]
    assert not folder.parent.exists()


def test_h63_a_file_that_is_set_aside_leaves_nothing_else_for_a_second_run(
    state_dir: Path,
) -> None:
    (segment(state_dir, 1).with_name("notes.txt")).write_text("mine")
    run(state_dir)
    assert set(kinds(state_dir).values()) == {"clean"}


def test_an_offset_file_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    home = unpack("ks400-eos", tmp_path)
    (home / "0_0" / ".checkpoint").write_text("1\n0\n")
    (task,) = run(tmp_path).tasks
    assert task.quarantine is not None
    assert (task.quarantine / "0_0" / ".checkpoint").read_text() == "1\n0\n"
    assert not (home / "0_0" / ".checkpoint").exists()
    report = fsck(tmp_path, ports(), FsckOptions(tasks=("0_0",)))
    assert {verdict.kind for verdict in report.verdicts} == {"wipes"}


def test_the_real_hot_copy_is_mended(tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path)
    report = run(tmp_path)
    assert {mend.action for task in report.tasks for mend in task.plan.stores} == {"set_aside"}
    assert set(kinds(tmp_path).values()) <= {"clean", "replays"}


def test_a_running_application_is_refused_and_nothing_is_written(state_dir: Path) -> None:
    lock = state_dir / APPLICATION / ".lock"
    lock.touch()
    before = tree(state_dir)
    with holding_locks([lock]), pytest.raises(StoreInUseError):
        run(state_dir)
    assert tree(state_dir) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_directory_that_cannot_be_written_is_refused_by_name(state_dir: Path) -> None:
    application = str(state_dir / APPLICATION)
    subprocess.run(["mount", "--bind", application, application], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", application], check=True)
        with pytest.raises(ConfigError, match=f"cannot write into {application}"):
            run(state_dir)
    finally:
        subprocess.run(["umount", application], check=True)


def test_a_database_that_somebody_has_open_is_refused(state_dir: Path) -> None:
    lock = segment(state_dir, 1) / "LOCK"
    lock.touch()
    with holding_locks([lock]), pytest.raises(StoreInUseError):
        run(state_dir)
    assert kinds(state_dir)["0_0/window"] == "loses_rows"


def test_a_task_with_links_in_it_is_refused_by_name(state_dir: Path, tmp_path: Path) -> None:
    store = state_dir / APPLICATION / "0_0" / "rocksdb" / "counts"
    shutil.move(store, tmp_path / "elsewhere")
    store.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePathError, match="counts is a symbolic link"):
        run(state_dir)


def test_modes_and_times_stay_but_that_of_the_task(state_dir: Path) -> None:
    task_dir = state_dir / APPLICATION / "0_0"
    task_dir.chmod(0o750)
    os.utime(task_dir, (1, 1))
    table = next(segment(state_dir, 1).glob("*.sst"))
    table.chmod(0o644)
    run(state_dir)
    assert task_dir.stat().st_mode & 0o777 == 0o750
    assert table.stat().st_mode & 0o777 == 0o644
    # The application removes task directories that it has not used for long, by their time.
    assert task_dir.stat().st_mtime > datetime.now(UTC).timestamp() - 600


def test_a_kill_at_any_point_leaves_a_directory_that_can_be_mended(
    state_dir: Path, tmp_path: Path
) -> None:
    expected = rows(state_dir, tmp_path / "expected")
    trial = tmp_path / "trial"
    shutil.copytree(state_dir, trial)
    points = points_of(mend_all, {"state_dir": str(trial)})
    assert {name for name, _ in points} >= {"staging made", "journal written", "journal removed"}
    for number, (point, occurrence) in enumerate(points):
        victim = tmp_path / f"victim-{number}"
        shutil.copytree(state_dir, victim)
        kill_at(mend_all, {"state_dir": str(victim)}, point, occurrence)
        run(victim)
        found = set(kinds(victim).values())
        assert found == {"clean"}, (point, found)
        assert rows(victim, tmp_path / f"raw-{number}") == expected, point
        left = [path.name for path in (victim / APPLICATION / WORK).rglob("*") if path.is_file()]
        assert set(left) <= {"lock"}, (point, left)


def test_h12_a_store_whose_line_is_passed_over_is_not_called_clean(tmp_path: Path) -> None:
    home = unpack("ks400-eos", tmp_path)
    lines = (home / "0_0" / ".checkpoint").read_text().splitlines()
    number = next(at for at, line in enumerate(lines) if "-plain-changelog" in line)
    lines[number] = " ".join([*lines[number].split()[:2], "-1"])
    (home / "0_0" / ".checkpoint").write_text("\n".join(lines) + "\n")
    for guarantee, kind in (("at_least_once", "replays"), ("exactly_once_v2", "wipes")):
        report = fsck(tmp_path, ports(), FsckOptions(tasks=("0_0",), guarantee=guarantee))
        (verdict,) = (each for each in report.verdicts if each.store.store == "plain")
        assert (verdict.kind, verdict.resume_offset) == (kind, None)
        assert any("passes over" in note for note in report.notes)


def test_h14_a_plain_file_in_the_place_of_a_store_is_damage_and_is_set_aside(
    state_dir: Path,
) -> None:
    counts = state_dir / APPLICATION / "0_1" / "rocksdb" / "counts"
    shutil.rmtree(counts)
    counts.write_text("mine")
    options = FsckOptions(tasks=("0_1",))
    assert kinds(state_dir)["0_1/counts"] == "damaged"
    (task,) = run(state_dir, options).tasks
    assert not counts.exists()
    assert task.quarantine is not None
    assert (task.quarantine / "0_1" / "rocksdb" / "counts").read_text() == "mine"


def exchange_segments(task_dir: Path) -> list[Path]:
    """Make a window store of two days, and let the folders of its segments change places."""
    made = make_window(
        task_dir.parents[1],
        task_dir.name,
        "sales",
        {
            day * DAY_MS: Pairs(
                pairs={b"k" + (day * DAY_MS + 5).to_bytes(8, "big") + bytes(4): b"v"},
                applied_offset=99,
            )
            for day in (20_000, 20_001)
        },
    )
    first, second = made.values()
    spare = first.with_name("spare")
    first.rename(spare)
    second.rename(first)
    spare.rename(second)
    return [first, second]


@pytest.mark.parametrize("scan", [False, True])
def test_h56_exchanged_segments_are_rows_lost_and_set_aside(state_dir: Path, scan: bool) -> None:
    task_dir = state_dir / APPLICATION / "0_1"
    exchange_segments(task_dir)
    options = FsckOptions(tasks=("0_1",), scan=scan)
    report = fsck(state_dir, ports(), options)
    (verdict,) = (each for each in report.verdicts if each.store.store == "sales")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "exchanged")
    assert "it holds rows of the time of sales/sales.172" in verdict.reason
    (task,) = run(state_dir, options).tasks
    assert [mend.action for mend in task.plan.stores] == ["set_aside"]
    assert not (task_dir / "sales").exists()


def test_h56_no_snapshot_is_taken_of_exchanged_segments(state_dir: Path) -> None:
    exchange_segments(state_dir / APPLICATION / "0_1")
    layout = KafkaStreamsLayout()
    (location,) = (
        one for one in layout.discover(state_dir).locations if one.store.store == "sales"
    )
    with (
        RocksDBBackend().capture(location) as capture,
        pytest.raises(SourceDamagedError, match="was exchanged for another segment"),
    ):
        layout.positions(location, None, capture.view, running=False)


def test_h63_a_store_that_goes_takes_every_line_along_that_may_be_its(tmp_path: Path) -> None:
    """With topology optimisation a store's changelog is its source topic, whatever its name."""
    task = tmp_path / APPLICATION / "0_0"
    for name in ("left", "right"):
        make_database(task / "rocksdb" / name, {"default": {b"k": b"v"}})
    write_checkpoint(task, "clicks 0 50", "views 0 60")
    (task / "rocksdb" / "left" / "CURRENT").write_text("x")
    (mended,) = run(tmp_path).tasks
    assert [(each.store.store, each.action) for each in mended.plan.stores] == [
        ("left", "set_aside")
    ]
    assert not (task / "rocksdb" / "left").exists()
    assert not (task / ".checkpoint").exists()
    assert kinds(tmp_path)["0_0/right"] in ("replays", "wipes")

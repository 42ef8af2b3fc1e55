"""Before a start: what would lose rows is mended, what would be rebuilt is restored."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from snapstore import client
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.config import Config
from snapstore.config.schema import RepositoryConfig, Sections, StateConfig
from snapstore.errors import ConfigError, RefusedError, StorageError, StoreInUseError
from snapstore.operations.fsck import FsckOptions, fsck
from snapstore.operations.prepare import Outcome, PrepareOptions, PreparePorts, PrepareReport
from snapstore.operations.prepare import prepare as prepare_with
from snapstore.operations.prepare_plan import Share, choose_tasks
from snapstore.operations.restore_report import RestoreReport
from tests.support.mend_lab import ports, uneven_state
from tests.support.restore_lab import contents, tree
from tests.support.state_dirs import holding_locks, write_checkpoint
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    some_pairs,
    topic,
)

pytestmark = pytest.mark.slow

HERE = "pod-0"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A repository, and the name of this instance."""
    sections = Sections(
        repository=RepositoryConfig(url=(tmp_path / "repository").as_uri()),
        state=StateConfig(instance=HERE, cache_dir=str(tmp_path / "cache")),
    )
    made = Config(sections=sections)
    client.create(config=made).close()
    return made


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Two tasks with a key-value and a window store; window in 0_0 would lose rows."""
    return uneven_state(tmp_path / "state")


def save(config: Config, state_dir: Path, **how: Any) -> None:
    with client.open(config=config) as repository:
        assert not repository.snapshot(state_dir, **how).failed


def prepare(state_dir: Path, config: Config | None = None, **how: Any) -> PrepareReport:
    asked: dict[str, Any] = {"application": APPLICATION, "allow_unchecked_changelog": True, **how}
    report = client.prepare(state_dir, config=config, **asked)
    assert isinstance(report, PrepareReport)
    return report


def outcomes(report: PrepareReport) -> dict[str, Outcome]:
    return {f"{each.store.task}/{each.store.store}": each.outcome for each in report.stores}


def worst(state_dir: Path) -> str:
    return fsck(state_dir, ports(), FsckOptions()).worst


def break_store(state_dir: Path, task: str = "0_1", store: str = "counts") -> None:
    (state_dir / APPLICATION / task / "rocksdb" / store / "CURRENT").write_text("x")


def test_a_healthy_directory_is_read_and_not_touched(tmp_path: Path, config: Config) -> None:
    make_key_value(tmp_path, "0_0", "counts", Pairs(pairs=some_pairs(90), applied_offset=99))
    save(config, tmp_path)
    before = tree(tmp_path / APPLICATION)
    report = prepare(tmp_path, config)
    assert outcomes(report) == {"0_0/counts": "as_it_is"}
    assert tree(tmp_path / APPLICATION) == before


def test_without_a_repository_it_mends(state_dir: Path) -> None:
    report = prepare(state_dir)
    assert outcomes(report)["0_0/window"] == "mended"
    assert report.worst == "clean"
    assert worst(state_dir) == "clean"


def test_a_mend_is_preferred_to_a_snapshot(state_dir: Path, config: Config) -> None:
    save(config, state_dir)
    report = prepare(state_dir, config)
    assert outcomes(report)["0_0/window"] == "mended"
    assert not report.restored


def test_a_snapshot_is_preferred_where_that_is_asked_for(state_dir: Path, config: Config) -> None:
    save(config, state_dir)
    report = prepare(state_dir, config, prefer_snapshots=True, bring=False)
    assert outcomes(report)["0_0/window"] == "restored"
    assert worst(state_dir) == "clean"


def test_a_broken_store_comes_back_from_its_snapshot(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    save(config, state_dir)
    before = contents(state_dir, tmp_path / "before")
    break_store(state_dir)
    report = prepare(state_dir, config)
    assert outcomes(report)["0_1/counts"] == "restored"
    assert worst(state_dir) == "clean"
    after = contents(state_dir, tmp_path / "after")
    name = f"{APPLICATION}/0_1/rocksdb/counts"
    assert after[name] == before[name]


def test_without_a_usable_snapshot_a_broken_store_is_set_aside(
    state_dir: Path, config: Config
) -> None:
    save(config, state_dir)
    break_store(state_dir)
    report = prepare(state_dir, config, allow_unchecked_changelog=False)
    assert outcomes(report)["0_1/counts"] == "mended"
    assert any("0_1/counts was not restored: nothing proves" in note for note in report.notes)
    assert worst(state_dir) == "clean"
    assert not (state_dir / APPLICATION / "0_1" / "rocksdb" / "counts").exists()


def test_what_a_restore_replaces_unasked_is_kept_in_quarantine(
    state_dir: Path, config: Config
) -> None:
    save(config, state_dir)
    break_store(state_dir)
    folder = state_dir / APPLICATION / "0_1" / "rocksdb" / "counts"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert outcomes(prepare(state_dir, config))["0_1/counts"] == "restored"
    (kept,) = (state_dir / APPLICATION / ".snapstore" / "quarantine").glob("*-0_1")
    there = kept / "0_1" / "rocksdb" / "counts"
    assert {path.name: path.read_bytes() for path in there.iterdir()} == before
    note = (kept / "README.txt").read_text()
    assert f"{APPLICATION}/0_1/counts: " in note
    assert "cp -a" in note
    assert fsck(state_dir, ports(), FsckOptions(tasks=("0_1",))).worst == "clean"


def test_a_restore_of_what_is_not_there_leaves_no_quarantine(
    state_dir: Path, config: Config
) -> None:
    save(config, state_dir)
    shutil.rmtree(state_dir / APPLICATION / "0_1")
    prepare(state_dir, config, tasks=("0_1",))
    assert [*(state_dir / APPLICATION).glob(".snapstore/quarantine/*-0_1")] == []


def test_a_pipe_in_the_place_of_a_file_is_set_aside(state_dir: Path) -> None:
    task = state_dir / APPLICATION / "0_1"
    pipe = task / ".checkpoint"
    os.mkfifo(pipe)
    report = prepare(state_dir)
    assert "mended" in outcomes(report).values()
    assert not pipe.exists()
    (kept,) = (state_dir / APPLICATION / ".snapstore" / "quarantine").glob("*-0_1")
    assert (kept / "0_1" / ".checkpoint").is_fifo()


def test_a_storage_that_cannot_be_read_is_no_answer(state_dir: Path, config: Config) -> None:
    save(config, state_dir)
    break_store(state_dir)
    before = tree(state_dir)

    def restore(task: str, store: str | None, set_aside: Mapping[str, str]) -> RestoreReport:
        raise StorageError(f"no answer for {task}/{store}")

    with client.open(config=config) as repository:
        listed = repository.list(application=APPLICATION).snapshots
    made = PreparePorts(
        fsck=ports(),
        saved=lambda: {each.store: each for each in listed},
        instances_of=dict,
        restore=restore,
    )
    options = PrepareOptions(fsck=FsckOptions(application=APPLICATION), host=HERE)
    with pytest.raises(StorageError, match="no answer for 0_1/counts"):
        prepare_with(state_dir, made, options)
    assert tree(state_dir) == before


def test_a_line_without_files_goes_and_its_store_comes_back(
    state_dir: Path, config: Config
) -> None:
    save(config, state_dir)
    shutil.rmtree(state_dir / APPLICATION / "0_1" / "rocksdb" / "counts")
    write_checkpoint(state_dir / APPLICATION / "0_1", f"{topic('counts')} 1 99")
    report = prepare(state_dir, config)
    assert outcomes(report)["0_1/counts"] == "restored"
    assert worst(state_dir) == "clean"


def test_a_running_application_is_refused(state_dir: Path) -> None:
    lock = state_dir / APPLICATION / ".lock"
    lock.touch()
    with holding_locks([lock]), pytest.raises(StoreInUseError):
        prepare(state_dir)


def test_a_plan_says_what_would_be_done_and_writes_nothing(state_dir: Path, config: Config) -> None:
    save(config, state_dir)
    break_store(state_dir)
    before = tree(state_dir)
    plan = client.prepare(state_dir, config=config, application=APPLICATION, dry_run=True)
    assert {str(each.store): each.choice for each in plan.decisions} == {
        "orders/0_0/counts": "as_it_is",
        "orders/0_0/window": "mend",
        "orders/0_1/counts": "restore",
        "orders/0_1/window": "as_it_is",
    }
    assert tree(state_dir) == before


def test_an_empty_disk_gets_the_tasks_that_were_captured_here(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    save(config, state_dir)
    empty = tmp_path / "empty"
    report = prepare(empty, config)
    assert set(outcomes(report).values()) == {"restored"}
    assert {each.store.task for each in report.stores} == {"0_0", "0_1"}
    assert worst(empty) == "clean"


def test_an_empty_disk_of_another_instance_gets_nothing_unless_told_what(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    save(config, state_dir)
    with pytest.raises(
        RefusedError, match="no snapshot of 2 tasks was captured at 'pod-1'"
    ) as refused:
        prepare(tmp_path / "empty", config, instance="pod-1")
    assert refused.value.facts["instances"] == [HERE]
    assert refused.value.facts["tasks"] == ["0_0", "0_1"]
    assert not (tmp_path / "empty").exists()

    report = prepare(tmp_path / "named", config, tasks=("0_1",))
    assert {each.store.task for each in report.stores} == {"0_1"}
    for number, task in ((1, "0_0"), (2, "0_1")):
        shared = prepare(tmp_path / f"share-{number}", config, share=Share(number, 2))
        assert {each.store.task for each in shared.stores} == {task}


def test_instances_that_capture_the_standbys_of_each_other_both_get_all_back_h07(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    for name in ("pod-0", "pod-1"):
        save(settings_at(config, name), state_dir)
    for name in ("pod-0", "pod-1"):
        report = prepare(tmp_path / name, settings_at(config, name))
        assert {each.store.task for each in report.stores} == {"0_0", "0_1"}
        assert set(outcomes(report).values()) == {"restored"}
        assert report.empty_start is None


def test_a_new_pod_of_a_larger_stateful_set_starts_from_nothing_and_is_told_h07(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    save(settings_at(config, "pod-0"), state_dir)
    new = settings_at(config, "pod-2")
    report = prepare(tmp_path / "empty", new)
    assert report.empty_start == "none_of_this_instance"
    assert "was captured at 'pod-2': it starts from nothing; --task, --share" in report.notes[0]
    assert report.stores == ()
    planned = client.prepare(tmp_path / "empty", config=new, application=APPLICATION, dry_run=True)
    assert planned.empty_start == "none_of_this_instance"
    assert not (tmp_path / "empty").exists()


def settings_at(config: Config, instance: str) -> Config:
    state = msgspec.structs.replace(config.state, instance=instance)
    sections = msgspec.structs.replace(config.sections, state=state)
    return msgspec.structs.replace(config, sections=sections)


def test_an_empty_disk_without_any_snapshot_is_left_to_the_application(
    config: Config, tmp_path: Path
) -> None:
    report = prepare(tmp_path / "empty", config)
    assert report.stores == ()
    assert report.worst == "clean"
    assert report.empty_start == "no_snapshot"
    assert prepare(tmp_path / "empty", config, tasks=("0_7",)).stores == ()


def test_a_named_task_that_is_not_there_is_brought_beside_the_others(
    state_dir: Path, config: Config
) -> None:
    save(config, state_dir)
    shutil.rmtree(state_dir / APPLICATION / "0_1")
    assert {each.store.task for each in prepare(state_dir, config).stores} == {"0_0"}
    report = prepare(state_dir, config, tasks=("0_0", "0_1"))
    assert {each.store.task for each in report.stores} == {"0_0", "0_1"}


def test_a_task_that_would_be_wiped_is_restored_whole_or_not_at_all(
    state_dir: Path, config: Config, tmp_path: Path
) -> None:
    save(config, state_dir)
    crashed = tmp_path / "crashed"
    for store in ("counts", "more"):
        make_key_value(crashed, "0_1", store, Pairs(pairs=some_pairs(5), applied_offset=4))
    mark_open(crashed)
    eos: dict[str, Any] = {"guarantee": "exactly_once_v2", "version": "4.3.1"}
    report = prepare(crashed, config, **eos)
    assert set(outcomes(report).values()) == {"rebuilds"}
    assert not report.restored

    shutil.rmtree(crashed / APPLICATION / "0_1" / "rocksdb" / "more")
    report = prepare(crashed, config, **eos)
    assert set(outcomes(report).values()) == {"restored"}


def mark_open(state_dir: Path) -> None:
    """Mark every database as one that was not closed."""
    for current in sorted(state_dir.rglob("CURRENT")):
        RocksDBBackend().write_entries(
            current.parent, "offsets", {b"status": (1).to_bytes(8, "big")}
        )


def test_on_an_empty_disk_an_application_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no application was named"):
        client.prepare(tmp_path / "empty")


CHOICES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "the host's own": ({"host": "a"}, ("0_0", "0_10")),
    "a standby's too": ({"host": "c"}, ("0_0", "0_2")),
    "none of a new instance": ({"host": "z"}, ()),
    "those of a named instance": ({"host": "z", "instance": "b"}, ("0_2",)),
    "the first third": ({"host": "z", "share": Share(1, 3)}, ("0_0",)),
    "the last third": ({"host": "z", "share": Share(3, 3)}, ("0_10",)),
    "all of it": ({"host": "z", "share": Share(1, 1)}, ("0_0", "0_2", "0_10")),
}


@pytest.mark.parametrize("sentence", CHOICES)
def test_which_tasks_an_empty_disk_gets(sentence: str) -> None:
    how, expected = CHOICES[sentence]
    instances = {"0_0": {"a", "c"}, "0_2": {"b", "c"}, "0_10": {"a"}}
    assert choose_tasks({"0_10", "0_2", "0_0"}, lambda: instances, **how) == expected


def test_no_snapshot_at_all_is_nothing_to_bring() -> None:
    assert choose_tasks(set(), dict, host="a") == ()


@pytest.mark.parametrize("prefer", [False, True])
def test_a_task_whose_offset_file_is_damaged_is_restored_in_the_first_run_h64(
    tmp_path: Path, config: Config, prefer: bool
) -> None:
    state_dir = tmp_path / "healthy"
    for store in ("counts", "names"):
        make_key_value(state_dir, "0_1", store, Pairs(pairs=some_pairs(40), applied_offset=99))
    save(config, state_dir)
    before = contents(state_dir, tmp_path / "before")
    (state_dir / APPLICATION / "0_1" / ".checkpoint").write_text("garbage\n")

    report = prepare(state_dir, config, allow_unchecked_changelog=True, prefer_snapshots=prefer)

    assert [each.outcome for each in report.stores] == ["restored", "restored"], report
    assert not (state_dir / APPLICATION / "0_1" / ".checkpoint").exists()
    (kept,) = (state_dir / APPLICATION).glob(".snapstore/quarantine/*-0_1/0_1/.checkpoint")
    assert kept.read_text() == "garbage\n"
    assert contents(state_dir, tmp_path / "after") == before

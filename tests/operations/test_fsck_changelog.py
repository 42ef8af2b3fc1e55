"""What the changelog adds: offsets that it has not, has no more, or of which it is not the log."""

from pathlib import Path

import msgspec
import pytest

from snapstore import client
from snapstore.config import Config
from snapstore.config.schema import KafkaConfig, RepositoryConfig, Sections, StateConfig
from snapstore.errors import TopicRecreatedError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Event, Noted
from snapstore.model.verdict import Verdict
from snapstore.operations.fsck import FsckOptions, fsck
from snapstore.operations.fsck_report import FsckReport
from snapstore.operations.mend_plan import plan_mend
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.testing.changelog_contract import Written
from tests.support.log_in_memory import LogInMemory, LogRegistry
from tests.support.mend_lab import ports, uneven_state
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs, topic

STORES = ("counts", "window")
ALOS = FsckOptions(guarantee="at_least_once", version="4.4.0")
EOS = FsckOptions(guarantee="exactly_once_v2", version="4.4.0")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """Stores at offset 99, but the window store of 0_0: its segments hold 40 to 99."""
    return uneven_state(tmp_path / "state")


@pytest.fixture
def log() -> LogInMemory:
    """Changelogs that end before 500."""
    made = LogInMemory()
    for store in STORES:
        fill(made, store, 500)
    return made


def fill(log: LogInMemory, store: str, end: int, policy: str = "compact") -> None:
    partition = log.create_as(topic(store), 2, policy)
    for number in (0, 1):
        one = msgspec.structs.replace(partition, partition=number)
        log.append(one, [Written(b"k%d" % offset, b"v") for offset in range(end)])


def cut(log: LogInMemory, store: str, before: int, policy: str = "compact") -> None:
    fill(log, store, 500, policy)
    partition = ChangelogPartition(topic(store), 0)
    for number in (0, 1):
        log.cut_start(msgspec.structs.replace(partition, partition=number), before)


def look(state_dir: Path, log: LogInMemory, options: FsckOptions = ALOS) -> FsckReport:
    return fsck(state_dir, ports(log), options)


def verdict_on(report: FsckReport, store: str, task: str = "0_1") -> Verdict:
    (found,) = [
        each for each in report.verdicts if (each.store.store, each.store.task) == (store, task)
    ]
    return found


def test_the_records_to_replay_are_counted(state_dir: Path, log: LogInMemory) -> None:
    report = look(state_dir, log)
    verdict = verdict_on(report, "counts")
    assert (verdict.kind, verdict.resume_offset, verdict.records) == ("replays", 100, 400)
    assert report.bounds is not None
    assert len(report.bounds) == 4


def test_nothing_left_to_replay_is_clean(state_dir: Path, log: LogInMemory) -> None:
    fill(log, "counts", 100)
    assert verdict_on(look(state_dir, log), "counts").kind == "clean"


@pytest.mark.parametrize("options", [ALOS, EOS])
def test_an_offset_beyond_the_end_is_silent_loss(
    state_dir: Path, log: LogInMemory, options: FsckOptions
) -> None:
    fill(log, "counts", 99)
    verdict = verdict_on(look(state_dir, log, options), "counts")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "beyond_end")
    assert "ends before 99" in verdict.reason


def test_a_changelog_that_is_gone_is_silent_loss(state_dir: Path) -> None:
    empty = LogInMemory()
    fill(empty, "window", 500)
    verdict = verdict_on(look(state_dir, empty), "counts")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "topic_gone")


def test_h04_an_offset_before_the_start_rebuilds_the_whole_task_under_exactly_once(
    state_dir: Path, log: LogInMemory
) -> None:
    cut(log, "counts", 200)
    report = look(state_dir, log, EOS)
    verdict = verdict_on(report, "counts")
    assert (verdict.kind, verdict.cause) == ("wipes", "below_start")
    assert verdict_on(report, "window").kind == "wipes"
    assert "rows that only records before 200 held are gone from it" in verdict.advice
    assert not plan_mend(report).tasks


def test_h04_an_offset_before_the_start_loses_rows_under_at_least_once(
    state_dir: Path, log: LogInMemory
) -> None:
    cut(log, "counts", 200)
    for options in (ALOS, FsckOptions(version="4.4.0")):
        report = look(state_dir, log, options)
        verdict = verdict_on(report, "counts")
        assert (verdict.kind, verdict.cause) == ("loses_rows", "below_start")
        assert (verdict.resume_offset, verdict.skipped, report.worst) == (200, 100, "loses_rows")
        assert "it would go on at 100" in verdict.reason
        aside = [
            mend
            for task in plan_mend(report).tasks
            for mend in task.stores
            if mend.store == verdict.store
        ]
        assert [mend.action for mend in aside] == ["set_aside"]


@pytest.mark.parametrize(
    ("policy", "kind"), [("compact", "loses_rows"), ("compact,delete", "replays")]
)
def test_h04_files_of_an_unknown_offset_may_lack_what_the_log_has_no_more(
    tmp_path: Path, log: LogInMemory, policy: str, kind: str
) -> None:
    unknown = 2**64 - 4
    made = tmp_path / "state"
    make_key_value(made, "0_1", "counts", Pairs(pairs=some_pairs(9), applied_offset=unknown))
    assert verdict_on(look(made, log), "counts").kind == "replays"
    cut(log, "counts", 200, policy)
    verdict = verdict_on(look(made, log), "counts")
    assert verdict.kind == kind


def test_a_mend_says_what_it_costs(state_dir: Path, log: LogInMemory) -> None:
    (task,) = plan_mend(look(state_dir, log)).tasks
    (mend,) = task.stores
    assert (mend.action, mend.records) == ("note_least", 459)
    assert "replays 459 records, about 0.0 s from there" in mend.effect


def test_a_least_offset_out_of_range_sets_the_store_aside(
    state_dir: Path, log: LogInMemory
) -> None:
    cut(log, "window", 60)
    report = look(state_dir, log)
    assert verdict_on(report, "window", "0_0").cause == "uneven"
    (task,) = plan_mend(report).tasks
    (mend,) = task.stores
    assert (mend.action, mend.records) == ("set_aside", 440)
    assert "its least offset 40 lies before the start" in mend.effect


def configured(tmp_path: Path) -> Config:
    return Config(
        sections=Sections(
            repository=RepositoryConfig(url=(tmp_path / "repository").as_uri()),
            kafka=KafkaConfig(bootstrap="memory"),
            state=StateConfig(instance="here", cache_dir=str(tmp_path / "cache")),
        )
    )


def save(tmp_path: Path, state_dir: Path, log: LogInMemory) -> None:
    """Take fenced snapshots of everything."""
    report = try_to_save(tmp_path, state_dir, log)
    assert not report.failed, report.failed


def try_to_save(tmp_path: Path, state_dir: Path, log: LogInMemory) -> SnapshotReport:
    there = (tmp_path / "repository").exists()
    begin = client.open if there else client.create
    with begin(config=configured(tmp_path), registry=LogRegistry(log)) as repository:
        return repository.snapshot(state_dir, application=APPLICATION)


def ask(tmp_path: Path, state_dir: Path, log: LogInMemory) -> FsckReport:
    return client.fsck(
        state_dir,
        config=configured(tmp_path),
        guarantee="at_least_once",
        version="4.4.0",
        registry=LogRegistry(log),
    )


def test_a_changelog_that_was_created_again_is_told_by_the_fence_of_a_snapshot(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    save(tmp_path, state_dir, log)
    fill(log, "counts", 500)
    report = ask(tmp_path, state_dir, log)
    verdict = verdict_on(report, "counts")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "topic_recreated")
    assert verdict_on(report, "window").kind == "replays"


def test_h03_no_snapshot_of_the_new_topic_is_taken_from_files_of_the_old_one(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    even = uneven_state(tmp_path / "even", applied=(99, 99, 99))
    save(tmp_path, even, log)
    fill(log, "counts", 600)
    for _ in range(2):
        report = try_to_save(tmp_path, even, log)
        refused = {each.store.store: each.error for each in report.failed}
        assert set(refused) == {"counts"}
        assert isinstance(refused["counts"], TopicRecreatedError)
        assert "was deleted and created again since the files of" in refused["counts"].message
        verdict = verdict_on(ask(tmp_path, even, log), "counts")
        assert (verdict.kind, verdict.cause) == ("loses_rows", "topic_recreated")


def test_h03_a_newer_snapshot_of_the_new_topic_does_not_hide_where_older_files_are_from(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    """Taken from another directory, or by a version that did not look."""
    save(tmp_path, state_dir, log)
    fill(log, "counts", 600)
    rebuilt = tmp_path / "rebuilt"
    for offset in (99, 199):
        for task in ("0_0", "0_1"):
            content = Pairs(pairs=some_pairs(9), applied_offset=offset)
            make_key_value(rebuilt, task, "counts", content)
        save(tmp_path, rebuilt, log)
    assert verdict_on(ask(tmp_path, rebuilt, log), "counts").kind == "replays"
    verdict = verdict_on(ask(tmp_path, state_dir, log), "counts")
    assert (verdict.kind, verdict.cause) == ("loses_rows", "topic_recreated")


def test_files_that_were_made_after_the_topic_was_created_again_are_right(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    save(tmp_path, state_dir, log)
    fill(log, "counts", 500)
    rebuilt = tmp_path / "rebuilt"
    make_key_value(rebuilt, "0_1", "counts", Pairs(pairs=some_pairs(9), applied_offset=99))
    assert verdict_on(ask(tmp_path, rebuilt, log), "counts").kind == "replays"


def test_a_repository_that_cannot_be_read_is_told_and_the_look_goes_on(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    events: list[Event] = []
    report = client.fsck(
        state_dir, config=configured(tmp_path), registry=LogRegistry(log), listener=events.append
    )
    assert report.bounds is not None
    (note,) = [event.message for event in events if isinstance(event, Noted)]
    assert "what the snapshots know is left out" in note


def test_a_plan_says_where_a_snapshot_would_be_quicker(
    state_dir: Path, log: LogInMemory, tmp_path: Path
) -> None:
    even = uneven_state(tmp_path / "even", applied=(450, 450, 450))
    save(tmp_path, even, log)
    events: list[Event] = []
    client.mend(
        state_dir,
        config=configured(tmp_path),
        registry=LogRegistry(log),
        listener=events.append,
        dry_run=True,
    )
    notes = [event.message for event in events if isinstance(event, Noted)]
    assert any(
        "orders/0_0/window: its newest snapshot at offset 450 would replay 49 records" in note
        for note in notes
    ), notes

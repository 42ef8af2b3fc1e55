"""Crashed, closed and moved directories: what fsck foretells is what the application then does."""

import dataclasses
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from snapstore import client
from snapstore.config import Config
from snapstore.config.schema import KafkaConfig, RepositoryConfig, Sections, StateConfig
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.verdict import Verdict
from snapstore.operations.fsck import FsckOptions, fsck
from snapstore.operations.fsck_report import FsckReport
from snapstore.operations.mend import mend
from snapstore.operations.prepare import PrepareReport
from tests.support.crash_experiment import (
    Crash,
    Outcome,
    crash_twice,
    differences,
    started_anew,
)
from tests.support.mend_lab import ports
from tests.support.streams_app import Run, StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_for_records

IN_CI = (
    Crash(version="4.4.0", kind="at_least_once", order="inorder"),
    Crash(version="4.4.0", kind="transactional", order="late"),
)
IN_SOAK = (
    *IN_CI,
    Crash(version="4.4.0", kind="at_least_once", order="late"),
    Crash(version="4.4.0", kind="transactional", order="inorder"),
    Crash(version="4.3.1", kind="at_least_once", order="inorder"),
    Crash(version="4.3.1", kind="at_least_once", order="late"),
)
RUNS_IN_SOAK = 10

VERDICT_STORES = ("plain", "table", "window", "session", "count")


def named(crash: Crash) -> str:
    return f"{crash.version}-{crash.kind}-{crash.order}"


def look(app: StreamsApp) -> FsckReport:
    with closing(KafkaChangelog(app.bootstrap)) as changelog:
        options = FsckOptions(guarantee=app.guarantee, version=app.version)
        return fsck(app.state_dir, ports(changelog), options)


def make_ready(app: StreamsApp) -> None:
    with closing(KafkaChangelog(app.bootstrap)) as changelog:
        options = FsckOptions(guarantee=app.guarantee, version=app.version)
        mend(app.state_dir, ports(changelog), options)
        assert fsck(app.state_dir, ports(changelog), options).worst in ("clean", "replays", "wipes")


def prepare(app: StreamsApp, repository: Path | None = None) -> PrepareReport:
    """What `snapstore prepare` does before a start."""
    report = client.prepare(
        app.state_dir,
        config=configured(app, repository),
        application=app.application,
        guarantee=app.guarantee,
        version=app.version,
    )
    assert isinstance(report, PrepareReport)
    assert report.worst in ("clean", "replays", "wipes")
    return report


def configured(app: StreamsApp, repository: Path | None) -> Config:
    sections = Sections(
        repository=RepositoryConfig(url=None if repository is None else repository.as_uri()),
        kafka=KafkaConfig(bootstrap=app.bootstrap),
        state=StateConfig(instance="pod-0", cache_dir=str(app.work_dir / "cache")),
    )
    return Config(sections=sections)


def run_and_check(lab: StreamsLab, crash: Crash) -> Outcome:
    """Mended, nothing may be missing, stale or extra; not mended, fsck must have said so."""
    foretold: list[str] = []

    def see_and_mend(app: StreamsApp) -> None:
        foretold.append(look(app).worst)
        if crash.order == "late":
            prepare(app)
        else:
            make_ready(app)

    outcome = crash_twice(lab, crash, see_and_mend)
    assert not any(outcome.mended.values()), outcome
    assert all(outcome.rows.values()), outcome
    if any(outcome.as_it_is.values()):
        assert foretold[0] == "loses_rows", outcome
    return outcome


@pytest.fixture(scope="module")
def lost_in_ci() -> list[int]:
    """What each run has lost without a mend."""
    return []


@pytest.mark.slow
@pytest.mark.parametrize("crash", IN_CI, ids=named)
def test_no_row_is_lost_after_a_mend_however_often_it_is_killed(
    lab: StreamsLab, crash: Crash, lost_in_ci: list[int]
) -> None:
    lost_in_ci.append(run_and_check(lab, crash).lost)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_without_a_mend_a_crash_loses_rows(lab: StreamsLab, lost_in_ci: list[int]) -> None:
    """Not each does: it depends on what was flushed when. If none did, a mend would prove nothing.

    Those of the runs above count as well.
    """
    for seed in range(2, 8):
        if any(lost_in_ci):
            return
        lost_in_ci.append(run_and_check(lab, dataclasses.replace(IN_CI[0], seed=seed)).lost)
    assert any(lost_in_ci), "no run lost a row without a mend: this version seems to lose none"


@pytest.mark.soak
@pytest.mark.parametrize("crash", IN_SOAK, ids=named)
def test_no_row_is_lost_in_any_of_many_crashes(lab: StreamsLab, crash: Crash) -> None:
    lost = [
        run_and_check(lab, dataclasses.replace(crash, seed=seed, seconds=6 + seed % 4)).lost
        for seed in range(1, RUNS_IN_SOAK + 1)
    ]
    assert any(lost), f"{named(crash)}: no run lost a row without a mend: this version loses none"


def app_on(lab: StreamsLab, topic: str, **options: object) -> StreamsApp:
    return lab.app(topic, stores=VERDICT_STORES, memtable=65536, keys=500, **options)


def crashed(lab: StreamsLab, **options: object) -> StreamsApp:
    """An application that was killed under load, with more behind it than 4.2 waits for to note."""
    topic = lab.new_topic()
    load = lab.load(topic, InputShape(records=10_000_000, keys=500, rate=8000))
    app = app_on(lab, topic, **options)
    run = app.start()
    run.wait_for_state("RUNNING")
    wait_for_records(app, "window", 15_000)
    run.crash()
    load.stop()
    return app


def closed(lab: StreamsLab, **options: object) -> StreamsApp:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=20_000, keys=500))
    app = app_on(lab, topic, **options)
    app.run("caughtUp")
    return app


def check_restores(run: Run, report: FsckReport) -> None:
    """Compare each verdict with where the restore of its store began, and how far it went."""
    starts = {(event.store, event.partition): event for event in run.restore_starts()}
    restored = run.restored()
    for verdict in report.verdicts:
        if verdict.store.task == "global":
            continue
        key = (verdict.store.store, int(verdict.store.task.rpartition("_")[2]))
        _check_restore(verdict, starts.get(key), restored.get(key, 0))


def _check_restore(verdict: Verdict, start: object, restored: int) -> None:
    begun_at = getattr(start, "start_offset", None)
    if verdict.kind == "clean":
        assert restored == 0, verdict
    elif verdict.kind == "replays" and verdict.resume_offset is not None:
        assert begun_at == verdict.resume_offset, (verdict, start)
        assert verdict.records is not None
        assert restored <= verdict.records, (verdict, restored)
    else:
        assert verdict.kind in ("replays", "wipes"), verdict
        assert begun_at == 0, (verdict, start)
        assert verdict.records is not None
        # Under exactly-once offsets are taken by markers too.
        assert restored <= verdict.records, (verdict, restored)
        assert (restored > 0) == (verdict.records > 0), (verdict, restored)


@pytest.mark.parametrize(
    ("version", "guarantee"), [("4.4.0", "at_least_once"), ("4.2.1", "exactly_once_v2")]
)
def test_a_clean_close_starts_clean(lab: StreamsLab, version: str, guarantee: str) -> None:
    app = closed(lab, version=version, guarantee=guarantee)
    report = look(app)
    assert {verdict.kind for verdict in report.verdicts} == {"clean"}
    make_ready(app)
    check_restores(app.run("running"), report)


@pytest.mark.parametrize(("version", "kind"), [("4.4.0", "wipes"), ("4.2.1", "replays")])
def test_a_plain_exactly_once_crash_is_rebuilt(lab: StreamsLab, version: str, kind: str) -> None:
    app = crashed(lab, version=version, guarantee="exactly_once_v2")
    report = look(app)
    assert {verdict.kind for verdict in report.verdicts} == {kind}
    assert {verdict.resume_offset for verdict in report.verdicts} == {None}
    run = app.run("caughtUp")
    check_restores(run, report)
    assert not any(differences(run, started_anew(app), VERDICT_STORES).values())


def test_a_crash_of_4_2_replays_from_its_lines_and_loses_nothing(lab: StreamsLab) -> None:
    app = crashed(lab, version="4.2.1")
    report = look(app)
    assert {verdict.kind for verdict in report.verdicts} <= {"clean", "replays"}
    run = app.run("caughtUp")
    check_restores(run, report)
    assert any(
        verdict.kind == "replays" and verdict.resume_offset is not None
        for verdict in report.verdicts
    )
    assert not any(differences(run, started_anew(app), VERDICT_STORES).values())


def test_a_running_application_can_be_looked_at_and_is_not_disturbed(lab: StreamsLab) -> None:
    topic = lab.new_topic()
    load = lab.load(topic, InputShape(records=10_000_000, keys=500, rate=4000))
    app = app_on(lab, topic)
    run = app.start()
    run.wait_for_state("RUNNING")
    wait_for_records(app, "window", 2000)
    # What lies behind a repartition topic begins later; a store without records notes no offset.
    wait_for_records(app, "count", 1)
    for _ in range(5):
        report = look(app)
        assert all(task.running for task in report.tasks if task.verdicts)
        assert report.worst in ("clean", "replays", "loses_rows")
    load.stop()
    assert run.close().clean
    assert not run.exceptions()
    assert [each for each in look(app).verdicts if each.kind != "clean"] == []


def test_a_damaged_store_and_an_empty_disk_come_back_from_snapshots(
    lab: StreamsLab, tmp_path: Path
) -> None:
    app = closed(lab, version="4.4.0")
    repository = tmp_path / "repository"
    with client.create(config=configured(app, repository)) as opened:
        assert not opened.snapshot(app.state_dir, application=app.application).failed
    lab.fill(app.topic, InputShape(records=5000, keys=500, seed=2))
    app.run("caughtUp")

    (app.directory / "0_0" / "rocksdb" / "plain" / "CURRENT").write_text("MANIFEST-999999\n")
    outcomes = {
        f"{each.store.task}/{each.store.store}": each.outcome
        for each in prepare(app, repository).stores
    }
    assert outcomes.pop("0_0/plain") == "restored"
    assert set(outcomes.values()) == {"as_it_is"}
    run = app.run("running")
    assert 0 < run.restored()["plain", 0] < 5000
    rebuilt = started_anew(app)
    assert not any(differences(run, rebuilt, VERDICT_STORES).values())

    shutil.rmtree(app.state_dir)
    assert {each.outcome for each in prepare(app, repository).stores} == {"restored"}
    run = app.run("running")
    assert 0 < run.restored()["plain", 0] < 5000
    assert not any(differences(run, rebuilt, VERDICT_STORES).values())


def test_a_directory_moves_up_from_4_2_and_not_back(lab: StreamsLab) -> None:
    old = closed(lab, version="4.2.1")
    new = dataclasses.replace(old, version="4.4.0")
    report = look(new)
    assert {verdict.kind for verdict in report.verdicts} == {"clean"}
    check_restores(new.run("running"), report)

    back = look(old)
    assert {verdict.kind for verdict in back.verdicts} == {"refuses"}
    run = old.start("running")
    assert run.process.wait(400) != 0
    assert "Column families not opened: offsets" in run.process.tail(400)

"""What `fsck` foretells of unusual directories, and what real applications then do with them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore import client
from snapstore.errors import TopicRecreatedError
from snapstore.model.identity import ChangelogPartition
from snapstore.operations.prepare import PrepareReport
from snapstore.testing.changelog_contract import Written
from tests.kafka.writer import BrokerLogs
from tests.kafka_streams.test_crash_recovery import configured, look, make_ready
from tests.support.crash_experiment import Kind, copy_of, differences, started_anew
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape, hours_ago
from tests.support.streams_lab import StreamsLab
from tests.support.topic import bounds

TABLES = ("plain", "table")
OTHERS = [
    *(("4.4.0", kind) for kind in ("exactly_once", "transactional")),
    *(
        (version, kind)
        for version in ("4.3.1", "4.2.1")
        for kind in ("at_least_once", "exactly_once")
    ),
]


def with_old_names(app: StreamsApp, store: str) -> list[Path]:
    """Give the segments of a closed application the names of both older generations, in turn."""
    renamed = []
    for number, folder in enumerate(sorted(app.directory.glob(f"0_*/{store}/{store}.*"))):
        start_ms = int(folder.name.rpartition(".")[2])
        day = datetime.fromtimestamp(start_ms / 1000, UTC)
        name = f"{store}-{day:%Y%m%d%H%M}" if number % 2 else f"{store}:{start_ms}"
        renamed.append(folder.rename(folder.with_name(name)))
    return renamed


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_h63_segments_with_old_names_are_opened_by_the_application_and_kept_by_a_mend(
    lab: StreamsLab, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=4000, keys=200, start_ts=hours_ago(40), step_ms=36_000))
    app = lab.app(topic, version=version, stores=("window",), keys=200)
    app.run("caughtUp")
    renamed = with_old_names(app, "window")
    assert len(renamed) >= 2
    assert {verdict.kind for verdict in look(app).verdicts} == {"clean"}
    make_ready(app)
    assert all(folder.is_dir() for folder in renamed)
    run = app.run("running")
    assert sum(run.restored().values()) == 0
    assert not any(folder.exists() for folder in renamed)
    assert not any(differences(run, started_anew(app), ("window",)).values())


def check_cut_changelog(lab: StreamsLab, version: str, kind: Kind) -> None:
    """Start on files whose changelogs begin later than they end, as they are and mended.

    The verdict must be what happens. A mended task equals a rebuild from what the log has left.
    """
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=3000, keys=500))
    transactional = {"enable.transactional.statestores": "true"}
    app = lab.app(
        topic,
        version=version,
        stores=TABLES,
        keys=500,
        config=transactional if kind == "transactional" else {},
        guarantee="at_least_once" if kind == "at_least_once" else "exactly_once_v2",
    )
    app.run("caughtUp")
    old, mended = copy_of(app, "old"), copy_of(app, "mended")
    lab.fill(topic, InputShape(records=3000, keys=500, seed=2, delete_pct=50))
    truth = app.run("caughtUp")
    cut_changelogs(lab, app)
    verdicts = look(old).verdicts
    at_least_once = kind == "at_least_once"
    assert {each.cause for each in verdicts} == {"below_start"}
    assert {each.kind for each in verdicts} == {"loses_rows" if at_least_once else "wipes"}

    run = old.run("running")
    rebuilt = started_anew(app)
    for each in differences(run, truth, TABLES).values():
        assert each.missing, "rows that only the removed records held are gone"
        assert bool(each.stale and each.extra) == at_least_once, each
    assert any(differences(run, rebuilt, TABLES).values()) == at_least_once
    begun = {(each.store, each.partition): each.start_offset for each in run.restore_starts()}
    assert all(
        begun[each.store.store, int(each.store.task[-1])] == each.resume_offset
        for each in verdicts
        if at_least_once
    )

    make_ready(mended)
    assert not any(differences(mended.run("running"), rebuilt, TABLES).values())


def cut_changelogs(lab: StreamsLab, app: StreamsApp) -> None:
    """Remove all but the last 200 records; a broker asks that the topic may delete at all."""
    log = BrokerLogs(lab.broker)
    for name in (app.changelog(store) for store in TABLES):
        log.configure("TOPIC", name, {"cleanup.policy": "compact,delete", "retention.ms": "-1"})
        for partition in (0, 1):
            end = bounds(lab.broker.bootstrap, name, partition).end
            log.cut_start(ChangelogPartition(name, partition), end - 200)


def test_h04_at_least_once_keeps_files_that_end_before_their_changelog_begins(
    lab: StreamsLab,
) -> None:
    check_cut_changelog(lab, "4.4.0", "at_least_once")


@pytest.mark.soak
@pytest.mark.parametrize(("version", "kind"), OTHERS)
def test_h04_only_exactly_once_gives_such_files_up(
    lab: StreamsLab, version: str, kind: Kind
) -> None:
    check_cut_changelog(lab, version, kind)


def test_h03_files_of_a_topic_that_was_created_again_are_told_for_good(
    lab: StreamsLab, tmp_path: Path
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=1000, keys=200))
    app = lab.app(topic, stores=("plain",), keys=200)
    app.run("caughtUp")
    config = configured(app, tmp_path / "repository")
    with client.create(config=config) as repository:
        assert not repository.snapshot(app.state_dir, application=app.application).failed
    create_again(lab, app.changelog("plain"), records=1000)
    for _ in range(2):
        with client.open(config=config) as repository:
            report = repository.snapshot(app.state_dir, application=app.application)
        assert len(report.failed) == 2
        assert all(isinstance(each.error, TopicRecreatedError) for each in report.failed)
        found = client.fsck(app.state_dir, config=config, guarantee="at_least_once")
        assert {(each.kind, each.cause) for each in found.verdicts} == {
            ("loses_rows", "topic_recreated")
        }


def create_again(lab: StreamsLab, topic: str, *, records: int) -> None:
    """Delete a topic of two partitions, make it anew, and fill each."""
    log = BrokerLogs(lab.broker)
    log.recreate(ChangelogPartition(topic, 0), partitions=2)
    for partition in (0, 1):
        written = [Written(b"k%d" % number, b"v") for number in range(records)]
        log.append(ChangelogPartition(topic, partition), written)


@pytest.mark.parametrize(
    ("setter", "why"), [("ReverseOrder", "comparator"), ("OtherFolders", "db_paths")]
)
def test_h06_stores_that_only_the_application_opens_start_as_they_are(
    lab: StreamsLab, setter: str, why: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=500, keys=100, partitions=1))
    app = lab.app(topic, stores=("plain",), keys=100, config={"rocksdb.config.setter": setter})
    closed = app.run("caughtUp")
    (verdict,) = look(app).verdicts
    assert (verdict.kind, verdict.cause) == ("unknown", "unsupported")
    assert why in verdict.reason
    report = client.prepare(app.state_dir, application=app.application)
    assert isinstance(report, PrepareReport)
    assert [each.outcome for each in report.stores] == ["unseen"]
    run = app.run("running")
    assert not any(run.restored().values())
    assert run.dump() == closed.dump()

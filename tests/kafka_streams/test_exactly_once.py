"""Under exactly-once only what was closed cleanly, or is transactional, is taken."""

import dataclasses
import shutil
import time
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.snapshot_answers import Place, Taken, resume_offsets
from tests.support.streams_app import ALL_STORES, Run, StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.streams_raw import Stores, data_of, read_stores
from tests.support.topic import read_partition

pytestmark = pytest.mark.kafka

FILLED = InputShape(records=3000)
IN_MEMORY = {("mem", 0), ("mem", 1)}
QUERIED = {*ALL_STORES} - {"join", "versioned"}


def restore(app: StreamsApp, snapstore: Command) -> dict[Place, int]:
    """Lose the disk, and bring back what the repository has of the application."""
    shutil.rmtree(app.state_dir)
    options = ("--target", app.state_dir, "--allow-unchecked-changelog")
    answer = snapstore("restore", "--application", app.application, *options)
    return resume_offsets(answer.document)


def rebuild(app: StreamsApp, folder: Path) -> tuple[Run, Stores]:
    other = dataclasses.replace(app, state_dir=folder / "rebuilt", runs=app.runs)
    run = other.run("running")
    return run, read_stores(other.directory, folder)


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_a_closed_application_goes_on_from_where_it_was_closed(
    lab: StreamsLab, tmp_path: Path, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, FILLED)
    app = lab.app(topic, version=version, guarantee="exactly_once_v2", memtable=65536)
    before = app.run("caughtUp").dump()
    closed = read_stores(app.directory, tmp_path)
    snapstore = Command(tmp_path / "home", str(tmp_path / "repository"))
    snapstore("init")
    taken = Taken.of(snapstore("snapshot", "--state-dir", app.state_dir).document)
    assert not taken.refused
    assert taken.stored.keys() == closed.keys()

    assert restore(app, snapstore).keys() == closed.keys()
    run = app.run("running")

    replayed = {one: count for one, count in run.restored().items() if one not in IN_MEMORY}
    assert set(replayed.values()) == {0}
    assert all(run.restored()[one] > 0 for one in IN_MEMORY)
    rebuilt, wanted = rebuild(app, tmp_path)
    for store in QUERIED:
        assert run.dump()[store] == before[store] == rebuilt.dump()[store], store
    assert read_stores(app.directory, tmp_path) == closed
    assert {place: data_of(one) for place, one in wanted.items() if "join-" not in place[1]} == {
        place: data_of(one) for place, one in closed.items() if "join-" not in place[1]
    }


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_a_running_application_is_refused_with_the_reason(
    lab: StreamsLab, tmp_path: Path, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, FILLED)
    app = lab.app(topic, version=version, guarantee="exactly_once_v2", memtable=65536)
    run = app.start("forever")
    run.wait_ready()
    snapshot = ("snapshot", "--state-dir", app.state_dir)
    told = {"state": {"guarantee": "exactly_once_v2"}}
    for number, sections in enumerate(({}, told)):
        place = str(tmp_path / f"repository-{number}")
        snapstore = Command(tmp_path / "home", place, sections=sections)
        snapstore("init")
        for _ in range(60):
            of_a_task = snapstore(*snapshot, "--task", "0_0", expect=5)
            if "exactly-once" in of_a_task.error["message"]:
                break
            # Before its first flush a store does not even say which offset it holds.
            time.sleep(1)
        assert "exactly-once" in of_a_task.error["message"]
        taken = Taken.of(snapstore(*snapshot, expect=(3, 5)).document)
        # A global store takes part in no transaction; to 4.2 its offset is noted all the same.
        assert taken.stored.keys() <= {("global", "global")}
        assert set(taken.refused.values()) <= {"exactly_once_hot", "unknown_offset"}
        if sections or version == "4.2.1":
            assert taken.refused[("0_0", "plain")] == "exactly_once_hot"
        assert {item["store"] for item in snapstore("list").document["items"]} <= {"global"}
    run.close()


def test_a_running_application_with_transactional_stores_is_taken(
    lab: StreamsLab, tmp_path: Path
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, FILLED)
    app = lab.app(
        topic,
        guarantee="exactly_once_v2",
        memtable=65536,
        stores=("plain", "table", "window", "session"),
        config={"enable.transactional.statestores": "true"},
    )
    more = dataclasses.replace(FILLED, records=1_000_000, rate=800, seed=2)
    load = lab.load(topic, more)
    run = app.start("forever")
    run.wait_ready()
    snapstore = Command(tmp_path / "home", str(tmp_path / "repository"))
    snapstore("init")
    told = Command(
        tmp_path / "told",
        str(tmp_path / "repository"),
        sections={"state": {"guarantee": "exactly_once_v2"}},
    )
    missing = {(task, store) for task in ("0_0", "0_1") for store in app.stores}
    for _ in range(60):
        time.sleep(1)
        answer = told("snapshot", "--state-dir", app.state_dir, expect=(0, 3, 5))
        taken = Taken.of(answer.document)
        assert set(taken.refused.values()) <= {"unknown_offset"}
        missing -= taken.stored.keys()
        if not missing:
            break
    assert not missing
    load.stop()
    wait_until_logged(app)
    run.crash()

    resume = restore(app, snapstore)
    again = app.run("running")

    starts = {(one.store, one.partition): one.start_offset for one in again.restore_starts()}
    replayed = again.restored()
    for (task, store), offset in resume.items():
        place = (store, int(task[-1]))
        tail = read_partition(app.bootstrap, app.changelog(store), place[1], start=offset)
        assert (starts[place], replayed[place]) == (offset, len(tail)), place
        assert offset > 0
    rebuilt, _ = rebuild(app, tmp_path)
    assert again.dump() == rebuilt.dump()

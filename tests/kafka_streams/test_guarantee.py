"""With nothing configured: hot snapshots that come back, and global stores that open."""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.command import Command
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab

pytestmark = pytest.mark.kafka

GLOBAL_KEYS = 700


def until(look: Callable[[], Any], patience: float = 240) -> Any:
    deadline = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    return found


@pytest.mark.slow
def test_h02_hot_snapshots_of_an_at_least_once_application_come_back_with_nothing_configured(
    lab: StreamsLab, tmp_path: Path
) -> None:
    topic = lab.new_topic()
    app = lab.app(topic, memtable=65536, stores=("plain",))
    load = lab.load(topic, InputShape(records=1_000_000, rate=2000, value_size=100))
    until(lambda: topic in lab.broker.admin.list_topics(timeout=30).topics)
    run = app.start("forever")
    run.wait_ready()
    kafka = {"kafka": {"bootstrap": lab.broker.bootstrap}}
    snapstore = Command(tmp_path / "home", str(tmp_path / "repository"), sections=kafka)
    snapstore("init")
    snapshot = ("snapshot", "--state-dir", app.state_dir, "--from-disk")
    stored = until(lambda: _stored(snapstore(*snapshot, expect=(0, 3, 5)).document))
    load.stop()
    run.crash()
    shown = snapstore("show", stored[0]["id"]).document
    assert (shown["status"], shown["guarantee"], shown["guarantee_found_by"]) == (
        "open",
        "at_least_once",
        "changelog",
    )
    fresh = snapstore("status", expect=(0, 3)).document["items"]
    drilled = snapstore("drill", expect=(0, 3, 5)).document["items"]
    saved = {each["task"] for each in stored}
    codes = {each["code"] for each in (*fresh, *drilled) if each["task"] in saved}
    assert "exactly_once_hot" not in codes


def _stored(document: Any) -> list[Any]:
    return [each["snapshot"] for each in document["items"] if each.get("snapshot")]


@pytest.mark.parametrize("version", ["4.4.0", "4.3.1"])
def test_h05_a_global_store_that_was_open_is_set_aside_or_restored_as_closed(
    lab: StreamsLab, tmp_path: Path, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=50))
    write_global(lab.broker.bootstrap, topic, 0)
    app = lab.app(
        topic,
        version=version,
        guarantee="exactly_once_v2",
        memtable=65536,
        stores=("plain", "global"),
    )
    snapstore = Command(
        tmp_path / "home",
        str(tmp_path / "repository"),
        sections={"kafka": {"bootstrap": lab.broker.bootstrap}},
    )
    snapstore("init")
    run = app.start("forever")
    run.wait_ready()
    write_global(lab.broker.bootstrap, topic, 3000)
    asked = ("snapshot", "global", "--state-dir", app.state_dir)
    (saved,) = until(lambda: _stored(snapstore(*asked, expect=(0, 3, 5, 12)).document))
    run.crash()

    fsck = ("fsck", app.state_dir, "--application", app.application)
    assert kinds(snapstore(*fsck, expect=(0, 4)).document)["global"] == "refuses"
    snapstore(*fsck, "--repair")
    assert kinds(snapstore(*fsck).document).get("global") in (None, "replays")
    whole = rows(app)
    assert len(whole) >= GLOBAL_KEYS

    shutil.rmtree(app.directory / "global")
    target = ("--application", app.application, "--store", "global", "--target", app.state_dir)
    snapstore("restore", *target, "--allow-missed-tombstones")
    offset = saved["positions"][0]["resume_offset"]
    again = app.run("running")
    starts = {one.store: one.start_offset for one in again.restore_starts()}
    assert starts["global"] == offset > 0
    assert again.dump()["global"] == whole


def rows(app: StreamsApp) -> Any:
    return dataclasses.replace(app, runs=app.runs).run("running").dump()["global"]


def kinds(document: Any) -> dict[str, str]:
    return {
        store["store"]: store["verdict"] for task in document["tasks"] for store in task["stores"]
    }


def write_global(bootstrap: str, topic: str, start: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(start, start + 3000):
        key = b"k%05d" % (number % GLOBAL_KEYS)
        producer.produce(f"{topic}-global", key=key, value=b"v%08d" % number + b"x" * 200)
        producer.poll(0)
    assert producer.flush(120) == 0

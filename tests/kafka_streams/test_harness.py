"""The harness itself: a real broker, a real application, and stores that can be compared."""

import dataclasses
from pathlib import Path

import pytest

from tests.support.broker import Broker
from tests.support.streams_app import ALL_STORES
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_for_records
from tests.support.topic import bounds, fold, read_partition

IN_MEMORY = {"mem"}
QUERIED = set(ALL_STORES) - {"join"}


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_a_clean_restart_restores_nothing_and_equals_a_rebuild(
    lab: StreamsLab, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=3000))
    app = lab.app(topic, version=version, memtable=65536)

    first = app.run("caughtUp")
    assert not first.exceptions()
    assert set(first.dump()) == QUERIED
    assert {task.name for task in app.directory.glob("[0-9]*_*")} == {"0_0", "0_1", "1_0", "1_1"}

    again = app.run("running")
    on_disk = {
        key: n for key, n in again.restored().items() if key[0] not in IN_MEMORY | {"global-store"}
    }
    assert set(on_disk.values()) <= {0}

    rebuilt = dataclasses.replace(app, state_dir=lab.directory / "rebuilt").run("running")
    assert {store for store, _ in rebuilt.restored()} >= {"plain", "window", "session", "count"}
    # The versioned store shows its history to queries only once a record has come in.
    for store in QUERIED - {"versioned"}:
        assert again.dump()[store] == first.dump()[store], store
        assert rebuilt.dump()[store] == first.dump()[store], store


def test_the_changelog_read_independently_equals_the_store(lab: StreamsLab) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=2000, partitions=1))
    app = lab.app(topic, stores=("plain", "table"), guarantee="exactly_once_v2")
    dump = app.run("caughtUp").dump()

    bootstrap = lab.broker.bootstrap
    plain = fold(read_partition(bootstrap, app.changelog("plain")))
    table = fold(read_partition(bootstrap, app.changelog("table")))
    assert {key.decode(): (r.value or b"").decode() for key, r in plain.items()} == dump["plain"]
    assert {
        key.decode(): f"{r.timestamp}\t{(r.value or b'').decode()}" for key, r in table.items()
    } == dump["table"]
    # Under exactly-once the last offset is a transaction marker, which no reader sees.
    records = read_partition(bootstrap, app.changelog("plain"))
    assert records[-1].offset < bounds(bootstrap, app.changelog("plain")).end - 1


def test_a_crash_loses_what_was_in_the_memtables_and_the_restart_replays_it(
    lab: StreamsLab,
) -> None:
    topic = lab.new_topic()
    load = lab.load(topic, InputShape(records=1_000_000, rate=2000))
    app = lab.app(topic, stores=("plain", "window"))
    run = app.start()
    run.wait_ready()
    wait_for_records(app, "window", 100)
    run.crash()
    assert load.stop().records > 0

    recovered = app.run("caughtUp")
    assert sum(recovered.restored().values()) > 0
    assert recovered.states()[-1] == "NOT_RUNNING"


@pytest.mark.kafka
def test_a_broker_comes_back_on_its_ports_after_a_crash(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker", {"log.cleaner.backoff.ms": "100"}) as own:
        own.create_topic("kept", partitions=2, config={"cleanup.policy": "compact"})
        own.kill()
        own.start()
        topics = own.admin.list_topics(timeout=120).topics
        assert len(topics["kept"].partitions) == 2
        own.delete_topic("kept")
        own.stop()

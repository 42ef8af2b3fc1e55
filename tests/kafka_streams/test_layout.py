"""The layout against a real application: it is seen, kept out, and believes what was noted."""

from contextlib import ExitStack

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import ExactlyOnceHotError, StoreInUseError, UnknownOffsetError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.testing.layout_contract import carry_out, describe
from tests.support.streams_app import StreamsApp
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab

BACK = 85
STORES = ("plain", "window")


def taken(app: StreamsApp, location: StoreLocation, *, running: bool) -> ChangelogPosition:
    layout = KafkaStreamsLayout()
    noted = layout.noted_offsets(location)
    with RocksDBBackend().capture(location) as capture:
        (position,) = layout.positions(location, noted, capture.view, running=running)
    return position


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_an_application_replays_from_the_offset_that_was_noted(
    lab: StreamsLab, version: str
) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=3000, partitions=1))
    app = lab.app(topic, version=version, stores=STORES)
    before = app.run("caughtUp").dump()
    layout, backend = KafkaStreamsLayout(), RocksDBBackend()
    locations = layout.discover(app.state_dir, app.application).locations
    assert {one.store.store for one in locations} == set(STORES)

    with ExitStack() as stack:
        views = [
            stack.enter_context(backend.open_view(one.task_dir, one.root)) for one in locations
        ]
        descriptions = []
        for location in locations:
            there = taken(app, location, running=False)
            older = ChangelogPosition(there.changelog, there.applied_offset - BACK)
            descriptions.append(describe(location, [older]))
        notes = layout.notes(locations[0].task_dir, descriptions, views)
    carry_out(notes, locations[0].task_dir, backend)

    run = app.run("running")
    assert {store: count for (store, _), count in run.restored().items()} == dict.fromkeys(
        STORES, BACK
    )
    assert run.dump() == before


def test_a_running_application_is_seen_and_none_starts_while_it_is_held(lab: StreamsLab) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=500, partitions=1))
    app = lab.app(topic, stores=("plain",))
    layout = KafkaStreamsLayout()
    run = app.start()
    run.wait_ready()
    locations = layout.discover(app.state_dir, app.application).locations
    description = describe(locations[0], ())
    assert layout.which_in_use(locations) == locations
    with pytest.raises(StoreInUseError), layout.hold(app.state_dir, description):
        pytest.fail("held beside the running application")
    run.close()

    assert layout.which_in_use(locations) == ()
    with layout.hold(app.state_dir, description):
        kept_out = app.start("running")
        assert kept_out.process.wait(400) != 0
        assert "Unable to initialize state" in kept_out.process.tail()
    app.run("running")


@pytest.mark.parametrize("version", ["4.4.0", "4.2.1"])
def test_a_running_exactly_once_application_is_never_taken(lab: StreamsLab, version: str) -> None:
    topic = lab.new_topic()
    lab.fill(topic, InputShape(records=3000, partitions=1))
    app = lab.app(
        topic, version=version, stores=("plain",), guarantee="exactly_once_v2", memtable=65536
    )
    run = app.start("forever")
    run.wait_ready()
    (location,) = KafkaStreamsLayout().discover(app.state_dir, app.application).locations
    with pytest.raises((ExactlyOnceHotError, UnknownOffsetError)):
        taken(app, location, running=True)
    run.close()
    app.run("caughtUp")  # the first run may have ended before it applied a record
    assert taken(app, location, running=False).applied_offset > 0

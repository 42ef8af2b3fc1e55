"""A real Quix Streams application loses its state, and needs only the tail of its changelogs."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from snapstore.model.quix_records import LOCAL_FAMILIES
from tests.support.broker import Broker
from tests.support.command import Command
from tests.support.quix_app import PARTITIONS, Feeder, QuixApplication, feed, feed_nothing
from tests.support.rocksdb import raw_contents
from tests.support.topic import bounds

pytestmark = pytest.mark.timeout(1800)  # the first one may have to install Quix Streams

STORES = ("default", "tumbling_window_10000_sum")

State = Mapping[str, Mapping[str, Mapping[bytes, bytes]]]


@pytest.fixture
def application(
    broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[QuixApplication]:
    guarantee = getattr(request, "param", "at-least-once")
    made = QuixApplication(broker, tmp_path / "quix", f"quix-{tmp_path.name}", guarantee)
    yield made
    made.kill()


@pytest.fixture
def snapstore(application: QuixApplication, tmp_path: Path) -> Command:
    command = Command(
        tmp_path / "home",
        str(tmp_path / "repository"),
        sections={
            "kafka": {"bootstrap": application.broker.bootstrap},
            "state": {"dir": str(application.state_dir), "layout": "quix"},
        },
    )
    command("init")
    return command


def changelog_ends(application: QuixApplication) -> dict[str, int]:
    ends = {}
    for store in STORES:
        topic = application.changelog_of(store)
        for partition in range(PARTITIONS):
            ends[f"{topic}:{partition}"] = bounds(
                application.broker.bootstrap, topic, partition
            ).end
    return ends


def changelog_of(application: QuixApplication, item: Mapping[str, str]) -> str:
    """Return the changelog partition of a snapshot by the store it is of."""
    stream, _, partition = item["task"].rpartition("/")
    assert stream == application.input
    return f"{application.changelog_of(item['store'])}:{partition}"


def state_of(application: QuixApplication, scratch: Path) -> State:
    """Return all that a rebuild must bring back, read without snapstore."""
    found = {}
    for current in sorted(application.state_dir.rglob("CURRENT")):
        families = raw_contents(current.parent, scratch)
        found[str(current.parent.relative_to(application.state_dir))] = {
            name: pairs for name, pairs in families.items() if name not in LOCAL_FAMILIES
        }
    assert len(found) == len(STORES) * PARTITIONS
    return found


def lose_state(application: QuixApplication) -> None:
    shutil.rmtree(application.state_dir)


def run_to_the_end(application: QuixApplication) -> Mapping[str, int]:
    """Start, let it process all its input, and stop; returns what it had recovered.

    It recovers before it processes, so there is always something for it to process.
    """
    feed_nothing(application)
    application.start()
    application.wait_until_processed()
    return application.stop()


@pytest.mark.parametrize("application", ["at-least-once", "exactly-once"], indirect=True)
def test_a_store_copied_while_it_is_written_is_restored_and_only_the_tail_is_recovered(
    application: QuixApplication, snapstore: Command, tmp_path: Path
) -> None:
    application.start()
    with Feeder(application, first=0, per_second=400):
        application.wait_until_processed(1200)
        snapstore("snapshot")
        # Of the second it is known since when deletions follow, whatever the first has met.
        snapstore("snapshot")
        application.wait_until_processed(max(application.committed()) + 100)
        application.kill()
    taken = snapstore("list", "--latest", "1").document["items"]
    assert {snapstore("show", item["id"]).document["source"] for item in taken} == {"running"}
    applied = {changelog_of(application, item): item["applied_offset"] for item in taken}
    ends = changelog_ends(application)
    assert applied.keys() == ends.keys()
    lose_state(application)

    snapstore("restore", "--application", application.group)
    recovered = run_to_the_end(application)
    for changelog, end in ends.items():
        # The library reads the record at the offset again, and passes over it.
        assert 0 < recovered[changelog] <= end - applied[changelog], changelog
        assert recovered[changelog] < end / 2, changelog
    restored = state_of(application, tmp_path)

    lose_state(application)
    rebuilt = run_to_the_end(application)
    assert all(rebuilt[changelog] > recovered[changelog] for changelog in ends)
    assert state_of(application, tmp_path) == restored


def test_a_store_of_a_stopped_application_is_restored_and_replayed_so_that_nothing_is_left(
    application: QuixApplication, snapstore: Command, tmp_path: Path
) -> None:
    feed(application, 0, 2000)
    run_to_the_end(application)
    snapstore("snapshot")
    feed(application, 2000, 1000)
    run_to_the_end(application)
    truth = state_of(application, tmp_path)
    lose_state(application)

    snapstore("drill")
    snapstore("restore", "--application", application.group, "--replay")
    assert state_of(application, tmp_path) == truth
    assert run_to_the_end(application) == {}
    assert state_of(application, tmp_path) == truth


def test_a_running_application_is_not_restored_over(
    application: QuixApplication, snapstore: Command
) -> None:
    feed(application, 0, 200)
    application.start()
    application.wait_until_processed()
    snapstore("snapshot")
    refused = snapstore("restore", "--application", application.group, "--replace", expect=5)
    assert refused.error["code"] == "store_in_use"
    application.stop()
    answer = snapstore("restore", "--application", application.group, "--replace")
    assert len(answer.document["items"]) == len(STORES) * PARTITIONS
    assert run_to_the_end(application) == {}

"""Committed offsets are read from a coordinator that is being made, loaded and restarted."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import MemberDescription  # type: ignore[attr-defined]

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition
from tests.support.broker import Broker
from tests.support.crash import PROJECT

pytestmark = pytest.mark.kafka

TOPIC = "orders"
SOURCE = ChangelogPartition(TOPIC, 0)


class GroupReader:
    """Reads in a child process, so that it can be seen to die."""

    def __init__(self, broker: Broker, group: str) -> None:
        module = "tests.kafka.group_reader"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, broker.bootstrap, group, TOPIC],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=120)

    def ask(self, reads: int) -> None:
        """Have it read so often; each answer must be taken."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n" * reads)
        self._process.stdin.flush()

    def answer(self) -> str:
        """Return `offset N` or `error CODE`; AssertionError where the process has died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"the process ended with {self._process.wait(60)}"
        return line

    def read_until(self, offset: int | None) -> None:
        """Read until that is the offset; before there may be no answer, or none committed."""
        line = ""
        while line != f"offset {offset}":
            self.ask(1)
            line = self.answer()
            assert line in ("error kafka", "offset None", f"offset {offset}")


@pytest.mark.parametrize(
    ("deletions", "restarts"),
    [
        pytest.param(4, 1, id="a few"),
        pytest.param(40, 20, marks=[pytest.mark.soak, pytest.mark.timeout(3600)], id="many"),
    ],
)
def test_no_read_dies_while_the_coordinator_is_made_loaded_and_restarted_h76(
    tmp_path: Path, deletions: int, restarts: int
) -> None:
    """Starts a broker of its own, for it is killed. In the long run there are over 200 reads."""
    with Broker(tmp_path / "broker") as broker:
        broker.create_topic(TOPIC)
        with GroupReader(broker, "shop") as child:
            # Nobody has committed yet: __consumer_offsets is made for the first question.
            child.read_until(None)
            for _ in range(deletions):
                child.ask(4)
                broker.delete_topic("__consumer_offsets")
                assert {child.answer() for _ in range(4)} <= {"offset None", "error kafka"}
                child.read_until(None)
            commit(broker, "shop", 42)
            child.read_until(42)
            for _ in range(restarts):
                broker.kill()
                broker.start()
                for _ in range(8):
                    child.read_until(42)


def test_no_member_of_a_group_notices_that_its_offsets_are_read_h76(broker: Broker) -> None:
    topic = "groups-watched"
    broker.create_topic(topic, partitions=2)
    source = ChangelogPartition(topic, 0)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "watched", "log_level": 0}
    member = Consumer({**settings, "enable.auto.commit": False})
    assignments: list[list[TopicPartition]] = []
    member.subscribe(
        [topic],
        on_assign=lambda _, partitions: assignments.append(partitions),
        on_revoke=lambda _, partitions: assignments.append(partitions),
    )
    with closing(member):
        while not assignments:
            member.poll(0.1)
        member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        before = members(broker, "watched")
        generation = member.consumer_group_metadata()
        with closing(KafkaChangelog(broker.bootstrap, timeout_seconds=60)) as changelog:
            for _ in range(5):
                assert changelog.committed("watched", source) == 7
                member.poll(0.1)
                assert members(broker, "watched") == before
        # A rebalance would be told with the next heartbeats; a stale generation could not commit.
        for _ in range(10):
            member.poll(0.1)
        member.commit(offsets=[TopicPartition(topic, 0, 8)], asynchronous=False)
        assert member.consumer_group_metadata() == generation
        assert len(assignments) == 1
        assert members(broker, "watched") == before


def commit(broker: Broker, group: str, offset: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
    with closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)


def members(broker: Broker, group: str) -> list[str]:
    admin = broker.admin
    described = admin.describe_consumer_groups([group])[group].result(120)
    found: list[MemberDescription] = described.members
    assert found
    return [member.member_id for member in found]

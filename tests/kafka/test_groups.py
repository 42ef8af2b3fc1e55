"""What consumer groups have committed is read as it is, and never made up."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Event, Noted
from snapstore.operations.replay_input import CommittedInput
from snapstore.testing.changelog_contract import numbered
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker

TOPIC = "groups-orders"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    broker.create_topic(TOPIC, partitions=2)
    return TOPIC


@pytest.fixture
def changelog(broker: Broker) -> Iterator[KafkaChangelog]:
    with closing(KafkaChangelog(broker.bootstrap, timeout_seconds=30)) as changelog:
        yield changelog


@contextmanager
def member(broker: Broker, group: str) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()


def test_a_committed_offset_is_read(broker: Broker, topic: str, changelog: KafkaChangelog) -> None:
    with member(broker, "shop") as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 1, 42)], asynchronous=False)
    assert changelog.committed("shop", ChangelogPartition(topic, 1)) == 42
    assert changelog.committed("shop", ChangelogPartition(topic, 0)) is None


def test_input_after_a_committed_offset_that_is_gone_is_told_g64(
    broker: Broker, changelog: KafkaChangelog
) -> None:
    logs = BrokerLogs(broker)
    source = logs.create(cleanup_policy="delete")
    logs.append(source, numbered(10))
    with member(broker, "late") as consumer:
        consumer.commit(
            offsets=[TopicPartition(source.topic, source.partition, 4)], asynchronous=False
        )
    events: list[Event] = []
    committed = CommittedInput(changelog, lambda: datetime.now(UTC), events.append)

    assert committed("late", source) == 4
    assert events == []

    logs.cut_start(source, 7)
    assert committed("late", source) == 4
    (note,) = events
    assert isinstance(note, Noted)
    assert "begins at 7: the records 4 to 6, which the application would read" in note.message
    assert committed("nobody", source) is None
    assert len(events) == 1


def test_a_group_or_topic_that_nobody_knows_has_committed_nothing(
    topic: str, changelog: KafkaChangelog
) -> None:
    assert changelog.committed("nobody", ChangelogPartition(topic, 0)) is None
    assert changelog.committed("nobody", ChangelogPartition("no-such-topic", 0)) is None


def test_an_offset_in_a_transaction_counts_once_it_is_committed(
    broker: Broker, topic: str, changelog: KafkaChangelog
) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "log_level": 0}
    producer = Producer(settings)
    producer.init_transactions(30)
    with member(broker, "transacting") as consumer:
        for offset, commit in ((7, True), (9, False)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), 30
            )
            if commit:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
    assert changelog.committed("transacting", ChangelogPartition(topic, 0)) == 7

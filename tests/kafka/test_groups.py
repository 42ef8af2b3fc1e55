"""What consumer groups have committed is read as it is, and never made up."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.identity import ChangelogPartition
from tests.support.broker import Broker

TOPIC = "groups-orders"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    broker.create_topic(TOPIC, partitions=2)
    return TOPIC


@pytest.fixture
def changelog(broker: Broker) -> Iterator[KafkaChangelog]:
    with closing(KafkaChangelog(broker.bootstrap, timeout_seconds=10)) as changelog:
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

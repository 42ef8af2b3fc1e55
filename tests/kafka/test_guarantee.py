"""What a real broker's log shows of transactions at its end, whatever was done to it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.guarantee import written_under
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import ProcessingGuarantee
from snapstore.operations.guarantee import log_ends
from snapstore.testing.changelog_contract import Written, numbered
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker

COMPACTED_AT_ONCE = {
    "delete.retention.ms": "1",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.0001",
}


def said(changelog: KafkaChangelog, partition: ChangelogPartition) -> ProcessingGuarantee | None:
    (end,) = log_ends(changelog, [partition], lambda: datetime.now(UTC))
    return written_under(end)


def test_h02_the_last_write_tells_its_producer(changelog: KafkaChangelog, log: BrokerLogs) -> None:
    partition = log.create()
    assert said(changelog, partition) is None
    log.append(partition, numbered(5))
    assert said(changelog, partition) == "at_least_once"
    log.append_in_transaction(partition, numbered(3), commit=True)
    assert said(changelog, partition) == "exactly_once"
    log.append(partition, numbered(1))
    assert said(changelog, partition) == "at_least_once"
    log.append_in_transaction(partition, numbered(3), commit=False)
    assert said(changelog, partition) == "exactly_once"


def test_h02_an_open_transaction_is_seen_before_its_first_record_is(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(5))
    producer = log.begin(partition, numbered(2))
    assert said(changelog, partition) == "exactly_once"
    log.end(partition, producer, commit=True)


def test_h02_a_log_that_is_being_written_holds_no_open_transaction(
    changelog: KafkaChangelog, log: BrokerLogs, broker: Broker
) -> None:
    """A busy at-least-once application must not be taken for an exactly-once one, and refused."""
    partition = log.create()
    log.append(partition, numbered(1))
    with busy_writer(broker, partition):
        for _ in range(100):
            state = changelog.inspect(partition, now=datetime.now(UTC))
            assert state.log_end == state.high_watermark
            assert said(changelog, partition) == "at_least_once"
    assert state.log_end > 1000, "nothing was written meanwhile"


@contextmanager
def busy_writer(broker: Broker, partition: ChangelogPartition) -> Iterator[None]:
    """Write without transactions, a batch every millisecond, until the end."""
    settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "log_level": 0}
    producer, done = Producer(settings), Event()

    def write() -> None:
        number = 0
        while not done.wait(0.001):
            for _ in range(20):
                number += 1
                producer.produce(
                    partition.topic, key=b"k%d" % (number % 50), value=b"v", partition=0
                )
            producer.poll(0)
        producer.flush(60)

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()


@pytest.fixture
def eager_cleaner(log: BrokerLogs) -> Iterator[None]:
    """Let the broker's log cleaner look for work more than every 15 s."""
    log.configure("BROKER", "1", {"log.cleaner.backoff.ms": "200"})
    yield
    log.configure("BROKER", "1", {"log.cleaner.backoff.ms": None})


@pytest.mark.slow
@pytest.mark.parametrize("transactional", [False, True])
def test_h02_compaction_leaves_what_the_end_says(
    changelog: KafkaChangelog, log: BrokerLogs, eager_cleaner: None, transactional: bool
) -> None:
    """Even where every record is superseded, and the last one a deletion that nothing keeps."""
    partition = log.create(config=COMPACTED_AT_ONCE)
    deadline = time.monotonic() + 120
    first = True
    while first or changelog.mark(partition, 0) is not None:
        assert time.monotonic() < deadline, "the broker does not compact"
        record = Written(b"k", b"v" if first else None, int(time.time() * 1000))
        if transactional:
            log.append_in_transaction(partition, [record], commit=True)
        else:
            log.append(partition, [record])
        time.sleep(0.06 if first else 0.3)
        first = False
    assert said(changelog, partition) == ("exactly_once" if transactional else "at_least_once")


def test_h02_a_log_whose_records_are_all_gone_says_nothing(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(cleanup_policy="delete")
    log.append_in_transaction(partition, numbered(5), commit=True)
    log.cut_start(partition, 5)
    # Only the marker is left: there is no record to go by.
    assert said(changelog, partition) is None
    log.cut_start(partition, 6)
    assert said(changelog, partition) is None
    log.append(partition, numbered(1))
    assert said(changelog, partition) == "at_least_once"

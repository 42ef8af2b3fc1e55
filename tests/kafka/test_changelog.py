"""What happens to real changelogs: they are made again, cut, compacted, written by transactions."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from snapstore.errors import ChangelogGoneError, ConfigError, CredentialsError, KafkaError
from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.changelog import is_compacted
from snapstore.model.identity import ChangelogPartition
from snapstore.testing.changelog_contract import NOW, Written, numbered, read_all
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker

NOBODY = "127.0.0.1:1"


def test_the_facts_of_a_topic_are_read_as_they_were_set(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(
        partitions=3,
        cleanup_policy="compact,delete",
        config={
            "delete.retention.ms": "12345",
            "retention.ms": "-1",
            "min.compaction.lag.ms": "172800000",
            "segment.ms": "600000",
        },
    )
    state = changelog.inspect(partition, now=NOW)
    assert is_compacted(state.cleanup_policy)
    assert state.partition_count == 3
    assert (state.delete_retention_ms, state.retention_ms) == (12345, None)
    assert (state.min_compaction_lag_ms, state.segment_ms) == (172_800_000, 600_000)
    assert str(UUID(state.topic_id)) == state.topic_id


def test_a_topic_made_again_has_the_old_name_and_another_id(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    old = changelog.inspect(partition, now=NOW)
    log.recreate(partition)
    new = changelog.inspect(partition, now=NOW)
    assert new.topic_id != old.topic_id


def test_a_topic_that_was_deleted_is_gone(changelog: KafkaChangelog, log: BrokerLogs) -> None:
    partition = log.create()
    log.drop(partition)
    with pytest.raises(ChangelogGoneError, match="does not exist"):
        changelog.inspect(partition, now=NOW)


def test_an_open_transaction_ends_the_log_where_it_begins(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(5))
    transaction = log.begin(partition, numbered(3, 5))

    state = changelog.inspect(partition, now=NOW)
    records, report = read_all(changelog, partition, 0, state.log_end)
    hidden = changelog.mark(partition, 5)
    log.end(partition, transaction, commit=True)

    assert (state.log_end, state.high_watermark) == (5, 8)
    assert len(records) == 5
    assert report.gap_free
    assert hidden is None
    assert changelog.mark(partition, 5) is not None


def test_reading_beyond_the_stable_end_gives_up_in_time(broker: Broker, log: BrokerLogs) -> None:
    partition = log.create()
    log.append(partition, numbered(5))
    changelog = KafkaChangelog(broker.bootstrap, timeout_seconds=5)
    began = time.monotonic()
    with pytest.raises(KafkaError, match="at offset 5 within 5 s"):
        read_all(changelog, partition, 0, 6)
    assert time.monotonic() - began < 60
    changelog.close()


def test_a_slow_reader_of_a_growing_log_stops_where_it_was_told(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(30_000))
    offsets: list[int] = []
    with changelog.read(partition, 0, 30_000) as tail:
        for batch in tail:
            offsets += [record.offset for record in batch]
            log.append(partition, numbered(1_000, 30_000))
    assert offsets == list(range(30_000))
    assert tail.report.gap_free


@pytest.fixture
def eager_cleaner(log: BrokerLogs) -> Iterator[None]:
    """Let the broker's log cleaner look for work more than every 15 s."""
    log.configure("BROKER", "1", {"log.cleaner.backoff.ms": "200"})
    yield
    log.configure("BROKER", "1", {"log.cleaner.backoff.ms": None})


@pytest.mark.slow
def test_a_compacted_tombstone_leaves_a_gap_and_a_tail_that_holds_only_gaps_ends(
    changelog: KafkaChangelog, log: BrokerLogs, eager_cleaner: None
) -> None:
    partition = log.create(
        config={
            "delete.retention.ms": "1",
            "segment.ms": "50",
            "min.cleanable.dirty.ratio": "0.0001",
        }
    )
    _append_now(log, partition, b"kept", b"v")
    _append_now(log, partition, b"gone", b"v")
    _append_now(log, partition, b"gone", None)
    kept = changelog.mark(partition, 0)
    assert changelog.mark(partition, 2) is not None

    end = 3
    deadline = time.monotonic() + 300
    while changelog.mark(partition, 2) is not None:
        assert time.monotonic() < deadline, "the broker does not compact"
        _append_now(log, partition, b"filler", b"v")
        end += 1
        time.sleep(0.3)

    state = changelog.inspect(partition, now=NOW)
    assert (state.log_start, state.log_end) == (0, end)
    assert changelog.mark(partition, 0) == kept
    records, report = read_all(changelog, partition, 0, end)
    assert b"gone" not in {record.key for record in records}
    assert report.missing == end - len(records) > 0
    assert read_all(changelog, partition, 1, 3)[1].records == 0


def _append_now(
    log: BrokerLogs, partition: ChangelogPartition, key: bytes, value: bytes | None
) -> None:
    log.append(partition, [Written(key, value, int(time.time() * 1000))])
    time.sleep(0.06)


@pytest.mark.slow
@pytest.mark.parametrize("bootstrap", [NOBODY, "no-such-host.invalid:9092"])
def test_brokers_that_do_not_answer_are_no_refusal_and_cost_bounded_time(bootstrap: str) -> None:
    changelog = KafkaChangelog(bootstrap, timeout_seconds=1)
    partition = ChangelogPartition("topic", 0)
    began = time.monotonic()
    with pytest.raises(KafkaError, match=rf"no answer from Kafka at {bootstrap}") as raised:
        changelog.inspect(partition, now=NOW)
    with pytest.raises(KafkaError):
        changelog.mark(partition, 0)
    assert time.monotonic() - began < 60
    assert raised.value.hint
    changelog.close()


def test_what_the_brokers_deny_is_not_called_unreachable(broker: Broker) -> None:
    changelog = KafkaChangelog(
        broker.bootstrap,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "somebody",
            "sasl.password": "wrong",
        },
        timeout_seconds=10,
    )
    with pytest.raises(CredentialsError, match="denies access") as raised:
        changelog.inspect(ChangelogPartition("topic", 0), now=NOW)
    assert "wrong" not in str(raised.value)
    changelog.close()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"no.such.property": "1"}, "no.such.property"),
        ({"fetch.wait.max.ms": "soon"}, "fetch.wait.max.ms"),
        ({"isolation.level": "read_uncommitted"}, "isolation.level must be read_committed"),
        ({"auto.offset.reset": "earliest"}, "auto.offset.reset must be error"),
        ({"bootstrap.servers": "elsewhere:9092"}, "bootstrap.servers must be"),
        ({"error_cb": "x"}, "the Kafka property error_cb is for programs"),
        ({"stats_cb": "x"}, "stats_cb"),
        ({"logger": "x"}, "logger"),
        ({"default.topic.config": "x"}, "default.topic.config"),
        ({"client.id": ["a", "b"]}, "client.id takes a text"),
    ],
)
def test_properties_that_would_make_a_replay_wrong_are_refused(
    properties: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        KafkaChangelog(NOBODY, properties)


def test_properties_that_say_the_same_and_those_for_tuning_pass() -> None:
    KafkaChangelog(
        NOBODY,
        {"enable.auto.commit": "false", "fetch.queue.backoff.ms": "5", "client.id": "me"},
    ).close()


def test_a_time_of_another_zone_finds_the_same_offset(
    changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    stamp = int(at.timestamp() * 1000)
    log.append(partition, [Written(b"k", b"v", stamp), Written(b"k", b"v", stamp + 1000)])
    later = (at + timedelta(milliseconds=1)).astimezone()
    assert changelog.offset_at(partition, later) == 1

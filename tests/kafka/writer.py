"""Topics of a test's own on the broker, and what is written to them."""

import itertools
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from snapstore.model.identity import ChangelogPartition
from snapstore.testing.changelog_contract import Written
from tests.support.broker import Broker
from tests.support.topic import bounds

_NUMBERS = itertools.count()


class BrokerLogs:
    """The writer of the changelog contract, on a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._admin = broker.admin
        self._producer = Producer(self._settings())
        self._transactional: Producer | None = None

    def create(
        self,
        *,
        partitions: int = 1,
        cleanup_policy: str = "compact",
        config: Mapping[str, str] | None = None,
    ) -> ChangelogPartition:
        name = f"log-{next(_NUMBERS)}-{time.time_ns()}"
        self._broker.create_topic(
            name, partitions, {"cleanup.policy": cleanup_policy, **(config or {})}
        )
        deadline = time.monotonic() + 120
        while self._topic_id(name) is None:
            assert time.monotonic() < deadline, "the topic does not appear"
            time.sleep(0.05)
        return ChangelogPartition(name, 0)

    def append(self, changelog: ChangelogPartition, records: Sequence[Written]) -> None:
        _produce(self._producer, changelog, records)

    def append_in_transaction(
        self, changelog: ChangelogPartition, records: Sequence[Written], *, commit: bool
    ) -> None:
        producer = self.begin(changelog, records)
        self.end(changelog, producer, commit=commit)

    def end(self, changelog: ChangelogPartition, producer: Producer, *, commit: bool) -> None:
        """End a transaction and wait for its marker, which the brokers write afterwards."""
        (producer.commit_transaction if commit else producer.abort_transaction)(120)
        deadline = time.monotonic() + 120
        while self._ends(changelog, committed=True) < self._ends(changelog, committed=False):
            assert time.monotonic() < deadline, "the transaction does not end"
            time.sleep(0.05)

    def begin(self, changelog: ChangelogPartition, records: Sequence[Written]) -> Producer:
        """Write within a transaction that the caller ends."""
        if self._transactional is None:
            name = f"writer-{next(_NUMBERS)}-{time.time_ns()}"
            self._transactional = Producer(self._settings() | {"transactional.id": name})
            self._transactional.init_transactions(120)
        self._transactional.begin_transaction()
        _produce(self._transactional, changelog, records)
        return self._transactional

    def cut_start(self, changelog: ChangelogPartition, before: int) -> None:
        place = TopicPartition(changelog.topic, changelog.partition, before)
        (future,) = self._admin.delete_records([place]).values()
        future.result(120)

    def drop(self, changelog: ChangelogPartition) -> None:
        self._broker.delete_topic(changelog.topic)

    def recreate(self, changelog: ChangelogPartition, *, partitions: int = 1) -> None:
        """Delete the topic and make one of the same name; returns once the brokers know it."""
        old = self._topic_id(changelog.topic)
        self.drop(changelog)
        self._broker.create_topic(changelog.topic, partitions, {"cleanup.policy": "compact"})
        deadline = time.monotonic() + 120
        while self._topic_id(changelog.topic) in (old, None):
            assert time.monotonic() < deadline, "the topic does not come back"
            time.sleep(0.05)

    def configure(self, kind: str, name: str, settings: Mapping[str, str | None]) -> None:
        """Set configuration entries of a topic or broker; None takes one back to its default."""
        entries = [
            ConfigEntry(
                entry,
                value or "",
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for entry, value in settings.items()
        ]
        resource = ConfigResource(ResourceType[kind], name, incremental_configs=entries)
        (future,) = self._admin.incremental_alter_configs([resource]).values()
        future.result(120)

    def _topic_id(self, topic: str) -> str | None:
        future = self._admin.describe_topics(TopicCollection([topic]))[topic]
        try:
            return str(future.result(120).topic_id)
        except KafkaException:
            return None

    def _ends(self, changelog: ChangelogPartition, *, committed: bool) -> int:
        place = (changelog.topic, changelog.partition)
        return bounds(self._broker.bootstrap, *place, committed=committed).end

    def _settings(self) -> dict[str, str | int | float | bool]:
        return {
            "bootstrap.servers": self._broker.bootstrap,
            "queue.buffering.max.messages": 1_000_000,
            "linger.ms": 1,
            "log_level": 0,
        }


def _produce(producer: Producer, changelog: ChangelogPartition, records: Sequence[Written]) -> None:
    for record in records:
        producer.produce(
            changelog.topic,
            partition=changelog.partition,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
        )
    assert producer.flush(120) == 0

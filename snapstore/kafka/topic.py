"""Facts of a topic and of one partition, as the brokers tell them."""

from base64 import b64decode
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from uuid import UUID

import msgspec
from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ConfigEntry,
    ConfigResource,
    ListOffsetsResultInfo,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from snapstore.errors import ChangelogGoneError, TopicRecreatedError
from snapstore.kafka.connection import Connection
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition

_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_UNLIMITED_MS = (-1, 2**63 - 1)


class Topic(msgspec.Struct, frozen=True):
    """Identity of a topic: ``id`` is a lower-case UUID, empty where the cluster gives none."""

    id: str
    partition_count: int


class End(msgspec.Struct, frozen=True):
    """An end of the log, and the epoch of its leader where the brokers say."""

    offset: int
    leader_epoch: int | None


def partition_state(
    connection: Connection, changelog: ChangelogPartition, now: datetime
) -> PartitionState:
    """Read everything that is known of one partition.

    Raises ChangelogGoneError where topic or partition do not exist, TopicRecreatedError when the
    topic was replaced while it was being read.
    """
    topic = describe_topic(connection, changelog.topic)
    if changelog.partition >= topic.partition_count:
        raise ChangelogGoneError(
            f"{changelog} does not exist: the topic has {topic.partition_count} partitions",
            changelog=str(changelog),
            partition_count=topic.partition_count,
        )
    config = _topic_config(connection, changelog.topic)
    earliest = _end(connection, changelog, _EARLIEST, IsolationLevel.READ_COMMITTED)
    # In this order: a record written between the two must not look like an open transaction.
    latest = _end(connection, changelog, _LATEST, IsolationLevel.READ_UNCOMMITTED)
    stable = _end(connection, changelog, _LATEST, IsolationLevel.READ_COMMITTED)
    cluster = connection.ask(
        lambda: connection.admin.describe_cluster(request_timeout=connection.timeout_seconds),
        "the cluster",
    )
    if describe_topic(connection, changelog.topic) != topic:
        raise TopicRecreatedError(
            f"topic {changelog.topic} was replaced while it was being read",
            hint="try again once the topic is settled",
            changelog=str(changelog),
        )
    return PartitionState(
        changelog=changelog,
        cluster_id=cluster.cluster_id or "",
        topic_id=topic.id,
        partition_count=topic.partition_count,
        log_start=earliest.offset,
        log_end=stable.offset,
        high_watermark=max(latest.offset, stable.offset),
        end_leader_epoch=stable.leader_epoch,
        cleanup_policy=config["cleanup.policy"],
        delete_retention_ms=int(config["delete.retention.ms"]),
        retention_ms=_limit_ms(config["retention.ms"]),
        min_compaction_lag_ms=int(config["min.compaction.lag.ms"]),
        segment_ms=int(config["segment.ms"]),
        observed_at=now,
    )


def describe_topic(connection: Connection, topic: str) -> Topic:
    """Look the topic up without creating it. Raises ChangelogGoneError."""

    def request() -> "Future[TopicDescription]":
        names = TopicCollection([topic])
        return connection.admin.describe_topics(names, request_timeout=connection.timeout_seconds)[
            topic
        ]

    described = connection.ask(request, f"topic {topic}")
    return Topic(_uuid_text(described.topic_id), len(described.partitions))


def log_start(connection: Connection, changelog: ChangelogPartition) -> int:
    """Return the first offset that the log still has."""
    return _end(connection, changelog, _EARLIEST, IsolationLevel.READ_COMMITTED).offset


def offset_at(connection: Connection, changelog: ChangelogPartition, at: datetime) -> int | None:
    """Return the first offset whose record is of that time or later; None where there is none."""
    spec = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
    found = _end(connection, changelog, spec, IsolationLevel.READ_COMMITTED).offset
    return found if found >= 0 else None


def _end(
    connection: Connection,
    changelog: ChangelogPartition,
    spec: OffsetSpec,
    isolation: IsolationLevel,
) -> End:
    def request() -> "Future[ListOffsetsResultInfo]":
        (future,) = connection.admin.list_offsets(
            {TopicPartition(changelog.topic, changelog.partition): spec},
            isolation_level=isolation,
            request_timeout=connection.timeout_seconds,
        ).values()
        return future

    found = connection.ask(request, str(changelog))
    epoch = found.leader_epoch
    return End(found.offset, epoch if epoch is not None and epoch >= 0 else None)


def _topic_config(connection: Connection, topic: str) -> Mapping[str, str]:
    def request() -> "Future[dict[str, ConfigEntry]]":
        (future,) = connection.admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic)], request_timeout=connection.timeout_seconds
        ).values()
        return future

    entries = connection.ask(request, f"topic {topic}")
    return {name: entry.value or "" for name, entry in entries.items()}


def _limit_ms(text: str) -> int | None:
    value = int(text)
    return None if value in _UNLIMITED_MS else value


def _uuid_text(uuid: Uuid | None) -> str:
    """Brokers, tools and drivers print topic ids in two kinds of base64: keep the 16 bytes."""
    if uuid is None:
        return ""
    content = b64decode(f"{uuid}==")
    return str(UUID(bytes=content)) if any(content) else ""

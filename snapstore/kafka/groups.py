"""What a consumer group has committed."""

from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition

from snapstore.kafka.connection import Connection
from snapstore.model.identity import ChangelogPartition


def committed_offset(connection: Connection, group: str, source: ChangelogPartition) -> int | None:
    """Return the offset that the group reads next; None where it has committed none.

    An offset that is part of an open transaction is waited for, until the time-out.
    """
    asked = [TopicPartition(source.topic, source.partition)]

    def request() -> "Future[ConsumerGroupTopicPartitions]":
        (future,) = connection.admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)],
            require_stable=True,
            request_timeout=connection.timeout_seconds,
        ).values()
        return future

    answers = connection.ask(
        request, f"what group {group} has committed in {source}", fault=_fault
    ).topic_partitions
    return answers[0].offset if answers and answers[0].offset >= 0 else None


def _fault(answer: ConsumerGroupTopicPartitions) -> KafkaError | None:
    return answer.topic_partitions[0].error if answer.topic_partitions else None

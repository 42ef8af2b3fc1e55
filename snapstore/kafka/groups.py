"""What a consumer group has committed."""

from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from snapstore.kafka.connection import Connection
from snapstore.model.identity import ChangelogPartition


def committed_offset(connection: Connection, group: str, source: ChangelogPartition) -> int | None:
    """Return the offset that the group reads next; None where it has committed none.

    An offset that is part of an open transaction is waited for.
    """

    asked = [TopicPartition(source.topic, source.partition)]

    def request() -> "Future[ConsumerGroupTopicPartitions]":
        (future,) = connection.admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)],
            require_stable=True,
            request_timeout=connection.timeout_seconds,
        ).values()
        return future

    subject = f"what group {group} has committed in {source}"
    for answer in connection.ask(request, subject).topic_partitions or ():
        if answer.error is not None:
            raise connection.error(answer.error, subject)
        return answer.offset if answer.offset >= 0 else None
    return None

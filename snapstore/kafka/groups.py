"""What a consumer group has committed."""

import time
from collections.abc import Sequence
from concurrent.futures import Future

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, TopicPartition

from snapstore.kafka.connection import Connection
from snapstore.model.identity import ChangelogPartition

_UNSTABLE = KafkaError.UNSTABLE_OFFSET_COMMIT
_PAUSE_SECONDS = 0.1


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

    subject = f"what group {group} has committed in {source}"
    deadline = time.monotonic() + connection.timeout_seconds
    while True:
        answer = _first(connection.ask(request, subject).topic_partitions)
        if answer is None:
            return None
        if answer.error is None:
            return answer.offset if answer.offset >= 0 else None
        if answer.error.code() != _UNSTABLE or time.monotonic() > deadline:
            raise connection.error(answer.error, subject)
        time.sleep(_PAUSE_SECONDS)


def _first(answers: Sequence[TopicPartition] | None) -> TopicPartition | None:
    return answers[0] if answers else None

"""What a consumer group has committed."""

from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

from snapstore.kafka.connection import Connection
from snapstore.model.identity import ChangelogPartition

_ATTEMPT_SECONDS = 1.0


def committed_offset(connection: Connection, group: str, source: ChangelogPartition) -> int | None:
    """Return the offset that the group reads next; None where it has committed none.

    An offset that is part of an open transaction is waited for, until the time-out. The group does
    not notice: who neither subscribes nor commits is no member of it. Needs Describe on the group.
    """
    # Not AdminClient.list_consumer_group_offsets: where the coordinator is loading or has moved,
    # librdkafka 2.16 turns to the consumer group of the client, and an admin client has none:
    # the process dies (rd_kafka_handle_OffsetFetch, RD_KAFKA_OP_COORD_QUERY).
    with closing(connection.consumer(group)) as consumer:
        answer = connection.settle(
            lambda: _committed(consumer, source), f"what group {group} has committed in {source}"
        )
    return answer.offset if answer.offset >= 0 else None


def _committed(consumer: Consumer, source: ChangelogPartition) -> TopicPartition:
    try:
        (answer,) = consumer.committed(
            [TopicPartition(source.topic, source.partition)], _ATTEMPT_SECONDS
        )
    except KafkaException:
        # Why no coordinator was found comes as a message.
        message = consumer.poll(0)
        reason = None if message is None else message.error()
        if reason is not None:
            raise KafkaException(reason) from None
        raise
    if answer.error is not None:
        raise KafkaException(answer.error)
    return answer

"""A consumer that stands at one position of one partition and moves forward only."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError as DriverError
from confluent_kafka import Message, TopicPartition

from snapstore.errors import LogDivergedError
from snapstore.kafka.connection import Connection
from snapstore.kafka.topic import describe_topic
from snapstore.model.changelog import ChangelogRecord, Headers
from snapstore.model.identity import ChangelogPartition

_WAIT_SECONDS = 0.1
_NO_HEADERS: Headers = ()


class PositionRefusedError(Exception):
    """The position is outside the log, or the log was cut back since its leader epoch."""


class PartitionReader:
    """Reads committed records in order, from ``start`` on. Use in a ``with`` block.

    Every offset below ``position`` was handed out as a record or is known to hold none.
    ``at_end`` tells that the log ended at the position when the brokers were last asked. With a
    leader epoch, the brokers check that the log was not cut back below ``start`` since then.
    """

    def __init__(
        self,
        connection: Connection,
        changelog: ChangelogPartition,
        start: int,
        leader_epoch: int | None = None,
    ) -> None:
        self.position = start
        self.at_end = False
        self._connection = connection
        self._changelog = changelog
        self._leader_epoch = leader_epoch
        self._consumer = connection.consumer()

    def __enter__(self) -> Self:
        self._consumer.assign([self._assignment()])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def fetch(self, limit: int) -> list[ChangelogRecord]:
        """Wait until the position moves or the end is met; return what was passed, if anything.

        Raises PositionRefusedError, ChangelogGoneError, CredentialsError, or KafkaError when
        nothing happens in time.
        """
        self.at_end = False
        before = self.position
        deadline = time.monotonic() + self._connection.timeout_seconds
        while True:
            records = self._take(self._receive(limit))
            if records or self.at_end or self.position > before:
                return records
            if time.monotonic() > deadline:
                seconds = self._connection.timeout_seconds
                stuck = self._connection.unreachable(
                    f"{self._changelog} at offset {self.position}", seconds
                )
                describe_topic(self._connection, self._changelog.topic)
                raise stuck

    def _receive(self, limit: int) -> Sequence[Message]:
        # consume() waits for its whole timeout unless the batch is full; poll() does not.
        with self._connection.translated(str(self._changelog), _WAIT_SECONDS):
            first = self._consumer.poll(_WAIT_SECONDS)
            if first is None:
                return ()
            return [first, *self._consumer.consume(limit - 1, 0)] if limit > 1 else [first]

    def _take(self, messages: Sequence[Message]) -> list[ChangelogRecord]:
        records = [_record(message) for message in messages if message.error() is None]
        self._pass(records)
        for message in messages if len(records) < len(messages) else ():
            error = message.error()
            if error is not None:
                self._note(message, error)
        self._pass_markers()
        return records

    def _pass(self, records: Sequence[ChangelogRecord]) -> None:
        position = self.position
        for record in records:
            if record.offset < position:
                raise LogDivergedError(
                    f"{self._changelog} delivered offset {record.offset} after "
                    f"{position - 1}: the log was cut back while it was being read",
                    changelog=str(self._changelog),
                )
            position = record.offset + 1
        self.position = position

    def _note(self, message: Message, error: DriverError) -> None:
        if error.code() == DriverError._PARTITION_EOF:
            self.position = max(self.position, message.offset() or 0)
            self.at_end = True
        elif error.code() == DriverError.GROUP_AUTHORIZATION_FAILED:
            # The driver looks for the coordinator of the group that every consumer must name.
            # Nothing is asked of it: the right to a group is not needed.
            return
        elif error.code() in (DriverError._AUTO_OFFSET_RESET, DriverError._LOG_TRUNCATION):
            raise PositionRefusedError(error.str())
        else:
            seconds = self._connection.timeout_seconds
            raise self._connection.error(error, str(self._changelog), seconds)

    def _pass_markers(self) -> None:
        # Transaction markers are not delivered, but the driver's own position passes them. It is
        # a negative sentinel until the first message.
        (current,) = self._consumer.position([self._place()])
        self.position = max(self.position, current.offset)

    def _assignment(self) -> TopicPartition:
        place = self._place()
        if self._leader_epoch is None:
            return TopicPartition(place.topic, place.partition, self.position)
        return TopicPartition(
            place.topic, place.partition, self.position, leader_epoch=self._leader_epoch
        )

    def _place(self) -> TopicPartition:
        return TopicPartition(self._changelog.topic, self._changelog.partition)


def _record(message: Message) -> ChangelogRecord:
    headers = message.headers()
    return ChangelogRecord(
        message.offset(),  # type: ignore[arg-type]
        message.key(),
        message.value(),
        message.timestamp()[1],
        # The driver's type also allows what may be produced; what it delivers is a list of pairs.
        tuple(headers) if headers else _NO_HEADERS,  # type: ignore[arg-type]
        message.leader_epoch(),
    )

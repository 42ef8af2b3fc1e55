"""KafkaChangelog: the Changelog port on a Kafka cluster."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from snapstore.errors import ChangelogTruncatedError, LogDivergedError, RefusedError
from snapstore.kafka.connection import Connection
from snapstore.kafka.groups import committed_offset
from snapstore.kafka.reader import PartitionReader, PositionRefusedError
from snapstore.kafka.tail import KafkaTail
from snapstore.kafka.topic import log_start, offset_at, partition_state
from snapstore.model.changelog import PartitionState, mark
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import RecordMark

_FARTHEST_BACK = 65_536


class KafkaChangelog:
    """Reads changelogs at ``bootstrap``. Safe to use from several threads.

    ``properties`` are librdkafka's (SASL, TLS, OAuth, tuning) and go untouched to every client;
    those that would make a replay wrong are refused with ConfigError. No wait without progress is
    longer than ``timeout_seconds``.
    """

    def __init__(
        self,
        bootstrap: str,
        properties: Mapping[str, object] | None = None,
        *,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._connection = Connection(bootstrap, properties or {}, timeout_seconds)

    def reach(self) -> None:
        self._connection.reach()

    def inspect(self, changelog: ChangelogPartition, *, now: datetime) -> PartitionState:
        return partition_state(self._connection, changelog, now)

    def mark(self, changelog: ChangelogPartition, offset: int) -> RecordMark | None:
        try:
            with PartitionReader(self._connection, changelog, offset) as reader:
                while reader.position <= offset:
                    records = reader.fetch(1)
                    if records:
                        return mark(records[0]) if records[0].offset == offset else None
                    if reader.at_end:
                        return None
        except PositionRefusedError:
            return None
        return None

    def last_mark(
        self, changelog: ChangelogPartition, *, start: int, stop: int
    ) -> RecordMark | None:
        window = 1
        while start < stop and window <= _FARTHEST_BACK:
            newest = None
            begin = max(start, stop - window)
            with self.read(changelog, begin, stop) as tail:
                for batch in tail:
                    newest = batch[-1]
            if newest is not None:
                return mark(newest)
            if begin == start:
                return None
            window *= 16
        return None

    def check_history(
        self, changelog: ChangelogPartition, *, offset: int, leader_epoch: int
    ) -> None:
        try:
            with PartitionReader(self._connection, changelog, offset, leader_epoch) as reader:
                reader.fetch(1)
        except PositionRefusedError as error:
            raise self._refusal(changelog, offset, str(error)) from error

    @contextmanager
    def read(
        self,
        changelog: ChangelogPartition,
        start: int,
        stop: int,
        *,
        leader_epoch: int | None = None,
    ) -> Iterator[KafkaTail]:
        with PartitionReader(self._connection, changelog, start, leader_epoch) as reader:
            try:
                yield KafkaTail(reader, stop)
            except PositionRefusedError as error:
                raise self._refusal(changelog, start, str(error)) from error

    def offset_at(self, changelog: ChangelogPartition, at: datetime) -> int | None:
        return offset_at(self._connection, changelog, at)

    def committed(self, group: str, source: ChangelogPartition) -> int | None:
        return committed_offset(self._connection, group, source)

    def close(self) -> None:
        self._connection.close()

    def _refusal(self, changelog: ChangelogPartition, offset: int, reason: str) -> RefusedError:
        first = log_start(self._connection, changelog)
        if offset < first:
            return ChangelogTruncatedError(
                f"{changelog} begins at {first}: the records {offset} to {first - 1} are gone",
                hint="use another snapshot, or let the application rebuild from the changelog",
                changelog=str(changelog),
                first_missing=offset,
                last_missing=first - 1,
            )
        return LogDivergedError(
            f"{changelog} was cut back below offset {offset}: {reason}",
            hint="use an older snapshot, or let the application rebuild from the changelog",
            changelog=str(changelog),
            offset=offset,
        )

"""The changelogs of one cluster."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

from snapstore.model.changelog import ChangelogRecord, PartitionState, TailReport
from snapstore.model.identity import ChangelogPartition
from snapstore.model.snapshot import RecordMark


class Tail(Protocol):
    """Committed records of a range of offsets, in order and in batches; iterated once.

    Iterating raises ChangelogGoneError, ChangelogTruncatedError, LogDivergedError, CredentialsError
    or, when nothing comes in time, KafkaError.
    """

    def __iter__(self) -> Iterator[Sequence[ChangelogRecord]]: ...

    @property
    def report(self) -> TailReport:
        """What was read up to now: complete once the iteration has ended."""
        ...


class Changelog(Protocol):
    """The changelogs of one cluster, for reading. Safe to use from several threads.

    Every method raises KafkaError when the brokers do not answer in time (try again),
    CredentialsError when they deny, ChangelogGoneError when topic or partition do not exist.
    No topic is ever created.
    """

    def inspect(self, changelog: ChangelogPartition, *, now: datetime) -> PartitionState:
        """Describe the partition as it is after ``now``, a wall time read before the call."""
        ...

    def mark(self, changelog: ChangelogPartition, offset: int) -> RecordMark | None:
        """Fingerprint the committed record at that offset; None where there is none (any more)."""
        ...

    def last_mark(
        self, changelog: ChangelogPartition, *, start: int, stop: int
    ) -> RecordMark | None:
        """Fingerprint the last record before ``stop``; None where none is near enough to find."""
        ...

    def check_history(
        self, changelog: ChangelogPartition, *, offset: int, leader_epoch: int
    ) -> None:
        """Raise LogDivergedError if the log was cut back below ``offset`` since that epoch.

        ChangelogTruncatedError when the offset is below the log's start.
        """
        ...

    def read(
        self,
        changelog: ChangelogPartition,
        start: int,
        stop: int,
        *,
        leader_epoch: int | None = None,
    ) -> AbstractContextManager[Tail]:
        """Read from ``start`` to before ``stop``, which is not beyond the log's stable end.

        With the leader epoch of the record before ``start``, a log that was cut back in between is
        noticed. Ends also where the last offsets hold no record.
        """
        ...

    def offset_at(self, changelog: ChangelogPartition, at: datetime) -> int | None:
        """Return the first offset with a record of that time or later; None where there is none."""
        ...

    def committed(self, group: str, source: ChangelogPartition) -> int | None:
        """Return the offset that a consumer group reads next; None where it has committed none.

        A topic or partition that does not exist counts as one in which nothing is committed.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class ReachableChangelog(Changelog, Protocol):
    """One that can be asked first whether anybody answers at all."""

    def reach(self) -> None:
        """Raise KafkaError or CredentialsError, within 10 s, unless the brokers answer."""
        ...

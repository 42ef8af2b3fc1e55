"""A changelog in memory: implements Changelog and the LogWriter of its contract, which it passes.

For tests that need a log they can cut, compact and read at will, thousands of times.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import msgspec

from snapstore.errors import ChangelogGoneError, ChangelogTruncatedError, LogDivergedError
from snapstore.model.changelog import ChangelogRecord, PartitionState, TailReport, mark
from snapstore.model.identity import ChangelogPartition
from snapstore.model.repository_url import url_scheme
from snapstore.model.snapshot import RecordMark
from snapstore.ports import Changelog, ObjectStorage
from snapstore.registry import Registry
from snapstore.storages.local import LocalStorage
from snapstore.testing.changelog_contract import Written

_BATCH = 1000
DAY_MS = 86_400_000


class _Log(msgspec.Struct):
    topic_id: str
    partitions: int
    policy: str
    records: dict[int, ChangelogRecord]
    start: int = 0
    end: int = 0
    open: int = 0
    delete_retention_ms: int = DAY_MS


class ListedTail:
    """Implements Tail over records that are given."""

    def __init__(self, records: Sequence[ChangelogRecord], start: int, stop: int) -> None:
        self._records = records
        self._bounds = (start, stop)
        self._read = 0

    def __iter__(self) -> Iterator[Sequence[ChangelogRecord]]:
        for first in range(0, len(self._records), _BATCH):
            batch = self._records[first : first + _BATCH]
            self._read += len(batch)
            yield batch

    @property
    def report(self) -> TailReport:
        start, stop = self._bounds
        return TailReport(start=start, stop=stop, records=self._read)


class LogRegistry(Registry):
    """Whatever cluster is configured, it is that log."""

    def __init__(self, log: "LogInMemory") -> None:
        super().__init__()
        self._log = log

    def changelog(self, bootstrap: str, properties: Mapping[str, object]) -> Changelog:
        del bootstrap, properties
        return self._log

    def storage(self, url: str, options: Mapping[str, object]) -> ObjectStorage:
        return TimelessStorage(url) if url_scheme(url) == "file" else super().storage(url, options)


class TimelessStorage(LocalStorage):
    """A folder that does not tell the time, for tests that let their own go by."""

    def now(self, *, writing: bool) -> datetime | None:
        del writing
        return None


class LogInMemory:
    """Partitions by name, all of leader epoch 0; a transaction has ended when it returns."""

    def __init__(self) -> None:
        self._logs: dict[ChangelogPartition, _Log] = {}
        self._numbers = itertools.count()

    def create(self, *, partitions: int = 1, cleanup_policy: str = "compact") -> ChangelogPartition:
        number = next(self._numbers)
        return self.create_as(f"topic-{number}", partitions, cleanup_policy)

    def create_as(
        self, topic: str, partitions: int = 1, cleanup_policy: str = "compact"
    ) -> ChangelogPartition:
        """Create a topic of that name, in place of one that is there."""
        id_ = f"id-{next(self._numbers)}"
        for number in range(partitions):
            self._logs[ChangelogPartition(topic, number)] = _Log(
                id_, partitions, cleanup_policy, {}
            )
        return ChangelogPartition(topic, 0)

    def append(self, changelog: ChangelogPartition, records: Sequence[Written]) -> None:
        log = self._log(changelog)
        for each in records:
            log.records[log.end] = ChangelogRecord(
                log.end, each.key, each.value, each.timestamp_ms, each.headers, 0
            )
            log.end += 1

    def append_in_transaction(
        self, changelog: ChangelogPartition, records: Sequence[Written], *, commit: bool
    ) -> None:
        if commit:
            self.append(changelog, records)
        else:
            self._log(changelog).end += len(records)
        self._log(changelog).end += 1

    def cut_start(self, changelog: ChangelogPartition, before: int) -> None:
        log = self._log(changelog)
        log.start = before
        log.records = {offset: each for offset, each in log.records.items() if offset >= before}

    def compact(
        self,
        changelog: ChangelogPartition,
        *,
        drop_tombstones: bool = False,
        before: int | None = None,
    ) -> None:
        """Keep the newest record of each key, of those ``before`` an offset if one is given."""
        log = self._log(changelog)
        stop = log.end if before is None else before
        newest = {record.key: record for record in log.records.values() if record.offset < stop}
        log.records = {
            offset: record
            for offset, record in log.records.items()
            if offset >= stop
            or (newest[record.key] is record and (record.value is not None or not drop_tombstones))
        }

    def begin_transaction(self, changelog: ChangelogPartition, records: int) -> None:
        """Let a transaction begin that has written so many records, and does not end."""
        self._log(changelog).open += records

    def keep_tombstones(self, changelog: ChangelogPartition, milliseconds: int) -> None:
        """Set ``delete.retention.ms``."""
        self._log(changelog).delete_retention_ms = milliseconds

    def replace(self, changelog: ChangelogPartition, record: ChangelogRecord) -> None:
        """Put another record at an offset."""
        self._log(changelog).records[record.offset] = record

    def inspect(self, changelog: ChangelogPartition, *, now: datetime) -> PartitionState:
        log = self._log(changelog)
        return PartitionState(
            changelog=changelog,
            cluster_id="memory",
            topic_id=log.topic_id,
            partition_count=log.partitions,
            log_start=log.start,
            log_end=log.end,
            high_watermark=log.end + log.open,
            end_leader_epoch=0,
            cleanup_policy=log.policy,
            delete_retention_ms=log.delete_retention_ms,
            retention_ms=None,
            min_compaction_lag_ms=0,
            segment_ms=7 * DAY_MS,
            observed_at=now,
        )

    def mark(self, changelog: ChangelogPartition, offset: int) -> RecordMark | None:
        record = self._log(changelog).records.get(offset)
        return None if record is None else mark(record)

    def last_mark(
        self, changelog: ChangelogPartition, *, start: int, stop: int
    ) -> RecordMark | None:
        offsets = [each for each in self._log(changelog).records if start <= each < stop]
        return self.mark(changelog, max(offsets)) if offsets else None

    def check_history(
        self, changelog: ChangelogPartition, *, offset: int, leader_epoch: int
    ) -> None:
        del leader_epoch
        log = self._log(changelog)
        if offset < log.start:
            raise ChangelogTruncatedError(
                f"{changelog} begins at {log.start}: "
                f"the records {offset} to {log.start - 1} are gone",
                last_missing=log.start - 1,
            )
        if offset > log.end:
            raise LogDivergedError(f"{changelog} was cut back below offset {offset}")

    @contextmanager
    def read(
        self,
        changelog: ChangelogPartition,
        start: int,
        stop: int,
        *,
        leader_epoch: int | None = None,
    ) -> Iterator[ListedTail]:
        self.check_history(changelog, offset=start, leader_epoch=leader_epoch or 0)
        found = self._log(changelog).records
        yield ListedTail(
            [found[offset] for offset in range(start, stop) if offset in found], start, stop
        )

    def offset_at(self, changelog: ChangelogPartition, at: datetime) -> int | None:
        at_ms = at.timestamp() * 1000
        records = self._log(changelog).records
        return next((n for n, record in records.items() if record.timestamp_ms >= at_ms), None)

    def committed(self, group: str, source: ChangelogPartition) -> int | None:
        """Return nothing: no group commits here."""
        del group, source
        return None

    def close(self) -> None:
        """Nothing is held."""

    def _log(self, changelog: ChangelogPartition) -> _Log:
        log = self._logs.get(changelog)
        if log is not None:
            return log
        first = self._logs.get(ChangelogPartition(changelog.topic, 0))
        if first is not None:
            raise ChangelogGoneError(f"{changelog.topic} has {first.partitions} partitions")
        raise ChangelogGoneError(f"there is no topic {changelog.topic}")

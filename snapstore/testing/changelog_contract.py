"""What every changelog must do: derive from ChangelogContract, and give it the two fixtures.

    class TestMyChangelog(ChangelogContract):
        @pytest.fixture
        def changelog(self) -> Changelog:
            return MyChangelog("address")

        @pytest.fixture
        def log(self) -> LogWriter:
            return MyLogWriter("address")

The writer is the other side: it makes topics and fills them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
import pytest

from snapstore.errors import ChangelogGoneError, ChangelogTruncatedError, LogDivergedError
from snapstore.model.changelog import ChangelogRecord, Headers, TailReport, fingerprint
from snapstore.model.identity import ChangelogPartition
from snapstore.ports import Changelog

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class Written(msgspec.Struct, frozen=True):
    """A record to append; ``value`` None is a tombstone."""

    key: bytes
    value: bytes | None
    timestamp_ms: int = 1_700_000_000_000
    headers: Headers = ()


class LogWriter(Protocol):
    """Makes topics and fills them."""

    def create(self, *, partitions: int = 1, cleanup_policy: str = "compact") -> ChangelogPartition:
        """Make a topic with a new name and that many partitions; return its first."""
        ...

    def append(self, changelog: ChangelogPartition, records: Sequence[Written]) -> None: ...

    def append_in_transaction(
        self, changelog: ChangelogPartition, records: Sequence[Written], *, commit: bool
    ) -> None:
        """Append; the marker of the end takes one offset more."""
        ...

    def cut_start(self, changelog: ChangelogPartition, before: int) -> None:
        """Let the log begin at that offset; its policy must be ``delete``."""
        ...


def numbered(count: int, first: int = 0) -> list[Written]:
    return [Written(b"k%d" % n, b"v%d" % n) for n in range(first, first + count)]


def read_all(
    changelog: Changelog,
    partition: ChangelogPartition,
    start: int,
    stop: int,
    leader_epoch: int | None = None,
) -> tuple[list[ChangelogRecord], TailReport]:
    with changelog.read(partition, start, stop, leader_epoch=leader_epoch) as tail:
        records = [record for batch in tail for record in batch]
        return records, tail.report


class ChangelogContract:
    """Run by pytest for each changelog."""

    def test_records_come_in_order_with_all_that_was_written(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        written = [
            Written(b"k", b"v", 5, (("h", b"1"), ("h", None), ("", b""))),
            Written(b"k", None, 6),
            Written(b"", b"", 7),
        ]
        log.append(partition, written)

        records, report = read_all(changelog, partition, 0, 3)

        assert [Written(r.key or b"", r.value, r.timestamp_ms, r.headers) for r in records] == (
            written
        )
        assert [record.offset for record in records] == [0, 1, 2]
        assert report == TailReport(start=0, stop=3, records=3)
        assert report.gap_free

    def test_reading_begins_and_stops_exactly_where_it_is_told(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        log.append(partition, numbered(25_000))

        records, report = read_all(changelog, partition, 7, 20_011)

        assert [record.offset for record in records] == list(range(7, 20_011))
        assert report.gap_free

    def test_an_empty_range_reads_nothing(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        assert read_all(changelog, partition, 0, 0) == ([], TailReport(start=0, stop=0, records=0))

    def test_what_was_aborted_is_not_read_and_counts_as_a_gap(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        log.append_in_transaction(partition, numbered(2), commit=True)
        log.append_in_transaction(partition, numbered(3, 10), commit=False)
        log.append_in_transaction(partition, numbered(1, 20), commit=True)

        records, report = read_all(changelog, partition, 0, 9)

        assert [(record.offset, record.key) for record in records] == [
            (0, b"k0"),
            (1, b"k1"),
            (7, b"k20"),
        ]
        assert (report.records, report.missing, report.gap_free) == (3, 6, False)

    def test_a_tail_of_markers_alone_ends(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        log.append_in_transaction(partition, numbered(3), commit=True)
        log.append_in_transaction(partition, numbered(1), commit=False)

        records, report = read_all(changelog, partition, 3, 6)

        assert records == []
        assert report == TailReport(start=3, stop=6, records=0)

    def test_the_state_tells_the_bounds(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create(partitions=3, cleanup_policy="delete")
        log.append(partition, numbered(10))
        log.append_in_transaction(partition, numbered(1), commit=True)
        log.cut_start(partition, 4)

        state = changelog.inspect(partition, now=NOW)

        assert (state.log_start, state.log_end, state.high_watermark) == (4, 12, 12)
        assert (state.partition_count, state.cleanup_policy) == (3, "delete")
        assert (state.changelog, state.observed_at) == (partition, NOW)
        assert not state.compacted

    def test_a_new_topic_is_empty(self, changelog: Changelog, log: LogWriter) -> None:
        state = changelog.inspect(log.create(), now=NOW)
        assert (state.log_start, state.log_end) == (0, 0)
        assert state.compacted

    def test_two_topics_are_told_apart(self, changelog: Changelog, log: LogWriter) -> None:
        one, other = log.create(), log.create()
        first, second = changelog.inspect(one, now=NOW), changelog.inspect(other, now=NOW)
        assert first.cluster_id == second.cluster_id != ""
        assert first.topic_id != second.topic_id
        assert "" not in (first.topic_id, second.topic_id)

    def test_what_does_not_exist_is_gone_not_empty_and_is_not_made(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        known = log.create(partitions=2)
        unknown = ChangelogPartition(f"{known.topic}-without", 0)
        for _ in range(2):
            with pytest.raises(ChangelogGoneError):
                changelog.inspect(unknown, now=NOW)
        with pytest.raises(ChangelogGoneError, match="has 2 partitions"):
            changelog.inspect(ChangelogPartition(known.topic, 2), now=NOW)

    def test_a_record_is_marked_by_what_it_holds(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        log.append(partition, [*numbered(3), *numbered(2, 1)])

        marks = [changelog.mark(partition, offset) for offset in range(5)]

        found = [mark for mark in marks if mark is not None]
        assert [mark.offset for mark in found] == [0, 1, 2, 3, 4]
        assert [mark.sha256 for mark in found[1:3]] == [mark.sha256 for mark in found[3:]]
        assert len({mark.sha256 for mark in found}) == 3
        records, _ = read_all(changelog, partition, 0, 5)
        assert [mark.sha256 for mark in found] == [fingerprint(record) for record in records]

    def test_where_no_record_is_there_is_no_mark(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create(cleanup_policy="delete")
        log.append(partition, numbered(3))
        log.append_in_transaction(partition, numbered(1), commit=False)
        log.append_in_transaction(partition, numbered(1), commit=True)
        log.cut_start(partition, 2)

        absent = {offset for offset in range(9) if changelog.mark(partition, offset) is None}

        assert absent == {0, 1, 3, 4, 6, 7, 8}

    def test_the_last_record_is_found_behind_markers(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        log.append(partition, numbered(40))
        log.append_in_transaction(partition, numbered(30), commit=False)

        mark = changelog.last_mark(partition, start=0, stop=71)

        assert mark == changelog.mark(partition, 39)
        assert mark is not None

    def test_an_empty_log_has_no_last_record(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        assert changelog.last_mark(partition, start=0, stop=0) is None
        log.append_in_transaction(partition, numbered(3), commit=False)
        assert changelog.last_mark(partition, start=0, stop=4) is None

    def test_below_the_start_is_refused_with_the_gap_and_never_skipped(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create(cleanup_policy="delete")
        log.append(partition, numbered(9))
        log.cut_start(partition, 6)

        with pytest.raises(ChangelogTruncatedError, match="the records 2 to 5 are gone") as raised:
            read_all(changelog, partition, 2, 9)
        assert raised.value.facts["last_missing"] == 5

    def test_beyond_the_end_is_refused(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        log.append(partition, numbered(9))
        with pytest.raises(LogDivergedError):
            read_all(changelog, partition, 11, 12)

    def test_a_history_without_a_break_passes(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        log.append(partition, numbered(9))
        state = changelog.inspect(partition, now=NOW)
        assert state.end_leader_epoch is not None
        for offset in (0, 5, 9):
            changelog.check_history(partition, offset=offset, leader_epoch=state.end_leader_epoch)
        records, _ = read_all(changelog, partition, 5, 9, leader_epoch=state.end_leader_epoch)
        assert len(records) == 4

    def test_an_epoch_that_ended_before_the_offset_shows_a_log_that_was_cut_back(
        self, changelog: Changelog, log: LogWriter
    ) -> None:
        partition = log.create()
        log.append(partition, numbered(9))
        state = changelog.inspect(partition, now=NOW)
        assert state.end_leader_epoch is not None
        with pytest.raises(LogDivergedError, match="cut back below offset 15"):
            changelog.check_history(partition, offset=15, leader_epoch=state.end_leader_epoch)
        with pytest.raises(LogDivergedError, match="cut back below offset 15"):
            read_all(changelog, partition, 15, 16, leader_epoch=state.end_leader_epoch)

    def test_offsets_are_found_by_time(self, changelog: Changelog, log: LogWriter) -> None:
        partition = log.create()
        start = datetime(2026, 1, 1, tzinfo=UTC)
        stamps = [start + timedelta(seconds=n) for n in range(3)]
        log.append(
            partition,
            [Written(b"k", b"v", int(stamp.timestamp() * 1000)) for stamp in stamps],
        )
        assert changelog.offset_at(partition, start) == 0
        assert changelog.offset_at(partition, start + timedelta(milliseconds=1500)) == 2
        assert changelog.offset_at(partition, start + timedelta(seconds=3)) is None

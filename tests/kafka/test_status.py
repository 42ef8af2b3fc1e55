"""What is told of snapshots when their changelogs are asked."""

import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore.kafka.changelog import KafkaChangelog
from snapstore.model.freshness import Rates, StoreFreshness, Thresholds
from snapstore.model.identity import ChangelogPartition
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Fence, Position
from snapstore.model.store import ChangelogPosition
from snapstore.operations.fence import take_fence
from snapstore.operations.status import StatusOptions, status
from snapstore.ports import Changelog
from snapstore.repository import Repository, keys
from snapstore.testing.changelog_contract import Written, numbered
from tests.kafka.writer import BrokerLogs
from tests.support.repository import COUNTS, describe, layout_of, make_repository, publish

T = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
MARGIN = timedelta(minutes=5)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


def save(
    repository: Repository,
    changelog: Changelog,
    partition: ChangelogPartition,
    applied_offset: int,
    at: datetime,
    *,
    earlier: Sequence[Fence] = (),
) -> ListedSnapshot:
    """Publish a snapshot of no files, with a fence that was taken for real."""
    position = ChangelogPosition(partition, applied_offset)
    fence = take_fence(changelog, position, now=at, earlier=earlier)
    description = describe(captured_at=at)
    positions = (Position(position=position, fence=fence),)
    return publish(repository, msgspec.structs.replace(description, positions=positions))


def look(
    repository: Repository,
    changelog: Changelog,
    now: datetime,
    *,
    thresholds: Thresholds | None = None,
    rates: Rates | None = None,
    safe_trim: bool = False,
) -> StoreFreshness:
    listed = repository.catalog.list_store(COUNTS).snapshots
    options = StatusOptions(thresholds=thresholds or Thresholds(), rates=rates, safe_trim=safe_trim)
    (store,) = status(
        {COUNTS: listed}, repository, changelog, layout_of, lambda: now, options
    ).stores
    return store


def test_lag_restore_time_and_horizon_of_the_newest_snapshot(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    listed = save(repository, changelog, partition, 9, T)
    log.append(partition, numbered(20))
    rates = Rates(download_bytes_per_second=1, replay_records_per_second=4, origin="given")

    found = look(repository, changelog, T + HOUR, rates=rates)

    assert (found.standing, found.used, found.age, found.over) == ("usable", listed, HOUR, ())
    assert (found.lag_records, found.restore_seconds) == (20, 5.0)
    assert found.usable_until == T + DAY - MARGIN
    (each,) = found.partitions
    written = sum(len(one.key) + len(one.value or b"") for one in numbered(20))
    assert (each.log_start, each.log_end, each.lag_bytes) == (0, 30, written)
    assert found.lag_bytes == written
    assert each.limit is not None
    assert each.limit.cause == "delete.retention.ms"


def test_the_bytes_of_a_long_tail_are_estimated_from_its_beginning(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    save(repository, changelog, partition, 9, T)
    log.append(partition, [Written(b"%04d" % n, b"v" * 96) for n in range(1999)])
    log.append(partition, [Written(b"last", b"v" * 500_000)])

    found = look(repository, changelog, T)

    assert (found.lag_records, found.lag_bytes) == (2000, 200_000)


def test_more_records_behind_than_allowed_is_over_the_threshold(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    save(repository, changelog, partition, 9, T)
    log.append(partition, numbered(3))

    def over(limit: int) -> tuple[str, ...]:
        thresholds = Thresholds(max_lag_records=limit)
        return look(repository, changelog, T, thresholds=thresholds).over

    assert over(3) == ()
    assert over(2) == ("3 records behind, more than 2",)


def test_a_recreated_topic_makes_every_snapshot_unusable(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    save(repository, changelog, partition, 4, T)
    save(repository, changelog, partition, 9, T + HOUR)
    log.recreate(partition)
    log.append(partition, numbered(20))

    found = look(repository, changelog, T + 2 * HOUR)

    assert (found.standing, found.code, found.used) == ("unusable", "topic_recreated", None)
    assert len(found.passed_over) == 2
    assert found.over == ("it has no usable snapshot",)


def test_past_the_horizon_it_says_what_would_have_kept_it_usable(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(config={"delete.retention.ms": "3600000"})
    log.append(partition, numbered(10))
    save(repository, changelog, partition, 4, T - 10 * HOUR)
    save(repository, changelog, partition, 9, T)
    log.append(partition, numbered(5))
    log.append_in_transaction(partition, numbered(1), commit=True)

    found = look(repository, changelog, T + 2 * HOUR)

    assert (found.standing, found.code) == ("unusable", "tombstone_horizon")
    dated, undated = found.advice
    assert dated.startswith("take snapshots more often than every 55 min")
    assert f"raise delete.retention.ms of {partition.topic} to 72300000 or more" in dated
    assert "known to have reached the end of the log" in undated


def test_retention_by_age_ends_the_use_of_a_snapshot(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(cleanup_policy="delete", config={"retention.ms": "7200000"})
    now = datetime.now(UTC).replace(microsecond=0)
    stamp = int((now - HOUR).timestamp() * 1000)
    log.append(partition, [Written(b"k", b"v", timestamp_ms=stamp + n) for n in range(3)])
    save(repository, changelog, partition, 1, now)

    found = look(repository, changelog, now)

    assert found.standing == "usable"
    assert found.usable_until == now + HOUR + timedelta(milliseconds=2)
    (each,) = found.partitions
    assert each.limit is not None
    assert each.limit.cause == "retention.ms"


def test_what_is_gone_from_the_start_of_the_log_is_explained(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create(cleanup_policy="compact,delete", config={"retention.ms": "-1"})
    log.append(partition, numbered(10))
    save(repository, changelog, partition, 4, T)
    log.cut_start(partition, 7)

    found = look(repository, changelog, T)

    assert (found.standing, found.code) == ("unusable", "changelog_truncated")
    assert found.advice == (
        "something deletes records of the topic: let it stop at the safe trim offset",
    )


def test_the_safe_trim_offset_is_that_of_the_oldest_good_snapshot(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    """G62."""
    partition = log.create()
    log.append(partition, numbered(1000))
    oldest = save(repository, changelog, partition, 300, T - 3 * HOUR)
    good = save(repository, changelog, partition, 600, T - 2 * HOUR)
    newest = save(repository, changelog, partition, 900, T - HOUR)
    fences = [each.fence for each in repository.catalog.load(newest).description.positions]
    assert fences[0] is not None
    for damaged in (oldest, newest):
        repository.storage.delete([keys.manifest(damaged.id)])
    # The end of the log was seen since, so the good one is within its horizon.
    log.append(partition, numbered(1))

    found = look(repository, changelog, T, safe_trim=True)

    assert found.newest == newest
    assert found.safe_trim_offsets == {partition: 600}
    assert {each.snapshot_id for each in found.passed_over} >= {newest.id}
    assert good.applied_offset == 600


def test_brokers_that_do_not_answer_are_no_missing_snapshot(
    repository: Repository, changelog: KafkaChangelog, log: BrokerLogs
) -> None:
    partition = log.create()
    log.append(partition, numbered(10))
    listed = save(repository, changelog, partition, 9, T)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = KafkaChangelog(f"127.0.0.1:{nobody.getsockname()[1]}", timeout_seconds=1)
        found = look(repository, dead, T + HOUR)
        dead.close()
    assert (found.standing, found.code) == ("unknown", "kafka")
    assert (found.used, found.age, found.lag_records) == (listed, HOUR, None)
    assert found.over == ()

"""A restored memory store is brought forward from its changelog, wholly or not at all."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import snapstore.client
from snapstore.client import Snapstore
from snapstore.config.schema import Config, KafkaConfig, Sections
from snapstore.errors import (
    ChangelogTruncatedError,
    LogDivergedError,
    NotReplayableError,
    SnapstoreError,
    TombstoneHorizonError,
    TopicRecreatedError,
    UncheckedChangelogError,
    UnknownOffsetError,
)
from snapstore.memory import MemoryStore
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition
from snapstore.testing.changelog_contract import Written
from tests.memory.conftest import STORE
from tests.support.log_in_memory import LogInMemory, LogRegistry

T = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def log() -> LogInMemory:
    return LogInMemory()


def written(count: int, first: int = 0) -> list[Written]:
    return [
        Written(b"%02d" % (n % 10), None if n % 7 == 6 else b"v%d" % n)
        for n in range(first, first + count)
    ]


def fold(records: list[Written]) -> dict[bytes, bytes]:
    content: dict[bytes, bytes] = {}
    for each in records:
        if each.value is None:
            content.pop(each.key, None)
        else:
            content[each.key] = each.value
    return content


def filled(
    store: MemoryStore, log: LogInMemory, partition: ChangelogPartition, up_to: int
) -> MemoryStore:
    with log.read(partition, 0, up_to + 1) as tail:
        for batch in tail:
            for record in batch:
                store.apply(record)
    return store


@pytest.fixture
def partition(log: LogInMemory) -> ChangelogPartition:
    made = log.create()
    log.append(made, written(50))
    return made


@pytest.fixture
def fenced(tmp_path: Path, log: LogInMemory) -> Iterator[MemoryStore]:
    """A store restored at T, with its fence, from a snapshot at offset 29; 20 records follow."""
    partition = log.create()
    log.append(partition, written(30))
    config = Config(sections=Sections(kafka=KafkaConfig(bootstrap="memory")))
    url, registry = str(tmp_path / "fenced"), LogRegistry(log)
    with snapstore.client.create(url, config=config, registry=registry, clock=at(T)) as repository:
        with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
            filled(store, log, partition, 29)
            store.snapshot(repository)
        log.append(partition, written(20, 30))
        with MemoryStore.restore(
            repository, STORE, tmp_path / "restored", changelog=partition
        ) as restored:
            yield restored


def at(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def test_an_empty_store_is_filled_from_the_beginning(
    tmp_path: Path, log: LogInMemory, partition: ChangelogPartition
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
        assert store.replay(log, clock=at(T)) == 50
        assert dict(store.range()) == fold(written(50))
        assert store.positions == {partition: 49}
        assert store.replay(log, clock=at(T), allow_unchecked_changelog=True) == 0


def test_only_the_records_after_the_offset_are_applied(
    log: LogInMemory, fenced: MemoryStore
) -> None:
    (partition,) = fenced.positions
    assert fenced.replay(log, clock=at(T + timedelta(hours=1))) == 20
    assert dict(fenced.range()) == fold(written(50))
    assert fenced.positions == {partition: 49}


def test_aborted_records_are_passed_over_and_the_end_is_reached(
    tmp_path: Path, log: LogInMemory, partition: ChangelogPartition
) -> None:
    log.append_in_transaction(partition, written(5, 100), commit=False)
    with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
        assert store.replay(log, clock=at(T)) == 50
        assert store.positions == {partition: 55}


def test_a_snapshot_without_a_fence_proves_nothing(
    tmp_path: Path, log: LogInMemory, partition: ChangelogPartition
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
        filled(store, log, partition, 29)
        with pytest.raises(UncheckedChangelogError):
            store.replay(log, clock=at(T))
        assert store.replay(log, clock=at(T), allow_unchecked_changelog=True) == 20


def other_record(log: LogInMemory, partition: ChangelogPartition) -> None:
    log.replace(partition, ChangelogRecord(29, b"09", b"another", 1_700_000_000_000))


REFUSALS: list[tuple[str, Callable[[LogInMemory, ChangelogPartition], object], object]] = [
    ("topic", lambda log, at: log.create_as(at.topic), TopicRecreatedError),
    ("start", lambda log, at: log.cut_start(at, 40), ChangelogTruncatedError),
    ("record", other_record, LogDivergedError),
]


@pytest.mark.parametrize(("name", "happens", "error"), REFUSALS, ids=[each[0] for each in REFUSALS])
def test_a_log_that_is_not_the_same_any_more_is_refused_and_changes_nothing(
    log: LogInMemory,
    fenced: MemoryStore,
    name: str,
    happens: Callable[[LogInMemory, ChangelogPartition], object],
    error: type[SnapstoreError],
) -> None:
    (partition,) = fenced.positions
    before = dict(fenced.range())
    happens(log, partition)
    with pytest.raises(error):
        fenced.replay(log, clock=at(T + timedelta(hours=1)))
    assert dict(fenced.range()) == before
    assert fenced.positions == {partition: 29}


def test_a_deletion_that_was_compacted_away_brings_nothing_back(
    log: LogInMemory, fenced: MemoryStore
) -> None:
    (partition,) = fenced.positions
    log.compact(partition, drop_tombstones=True)
    before = dict(fenced.range())
    late = at(T + timedelta(days=3))
    with pytest.raises(TombstoneHorizonError):
        fenced.replay(log, clock=late)
    assert dict(fenced.range()) == before
    assert fenced.positions == {partition: 29}
    fenced.replay(log, clock=late, allow_missed_tombstones=True)
    assert fold(written(50)).items() < dict(fenced.range()).items()


def test_a_tail_without_a_gap_is_safe_however_late(log: LogInMemory, fenced: MemoryStore) -> None:
    assert fenced.replay(log, clock=at(T + timedelta(days=300))) == 20
    assert dict(fenced.range()) == fold(written(50))


def test_a_tail_that_ends_in_an_error_is_not_applied(log: LogInMemory, fenced: MemoryStore) -> None:
    (partition,) = fenced.positions
    before = dict(fenced.range())
    log.append(partition, written(2000, 50))
    log.replace(partition, ChangelogRecord(1800, None, b"no key", 0))
    with pytest.raises(NotReplayableError):
        fenced.replay(log, clock=at(T + timedelta(hours=1)))
    assert dict(fenced.range()) == before
    assert fenced.positions == {partition: 29}
    log.replace(partition, ChangelogRecord(1800, b"00", b"a key", 0))
    assert fenced.replay(log, clock=at(T + timedelta(hours=1))) == 2020


def test_pairs_without_an_offset_are_not_mixed_with_a_changelog(
    tmp_path: Path, log: LogInMemory, partition: ChangelogPartition
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=partition) as store:
        store.put(b"a", b"1")
        with pytest.raises(UnknownOffsetError):
            store.replay(log, clock=at(T))


def test_what_was_replayed_is_in_the_next_snapshot(
    repository: Snapstore,
    tmp_path: Path,
    log: LogInMemory,
    fenced: MemoryStore,
) -> None:
    (partition,) = fenced.positions
    fenced.snapshot(repository)
    fenced.replay(log, clock=at(T + timedelta(hours=1)))
    fenced.snapshot(repository)
    with MemoryStore.restore(
        repository, STORE, tmp_path / "other", allow_unchecked_changelog=True
    ) as other:
        assert dict(other.range()) == fold(written(50))
        assert other.positions == {partition: 49}

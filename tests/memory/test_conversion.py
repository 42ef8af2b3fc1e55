"""Memory snapshots as RocksDB stores, the other way round, and where neither may go."""

from pathlib import Path

import msgspec
import pytest

from snapstore.backends.memory import MemoryBackend
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.client import Snapstore
from snapstore.config.schema import Config, StateConfig
from snapstore.errors import (
    NotReplayableError,
    PluginError,
    RefusedError,
    StoreNotFoundError,
    TargetNotEmptyError,
)
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.memory import MemoryStore, restore_as
from snapstore.model.digest import entries_digest
from snapstore.model.snapshot import Snapshot
from tests.memory.conftest import CHANGELOG, STORE, record

PAIRS = {b"%04d" % n: b"value-%d" % n for n in range(12_000)} | {b"": b"", b"\xff" * 9: b"\0" * 99}


@pytest.fixture
def taken(repository: Snapstore, tmp_path: Path) -> Snapshot:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for offset, (key, value) in enumerate(PAIRS.items()):
            store.apply(record(offset, key, value))
        store.apply(record(len(PAIRS), b"gone", b"1"))
        store.snapshot(repository)
        store.apply(record(len(PAIRS) + 1, b"gone", None))
        return store.snapshot(repository)


def plain(repository: Snapstore, folder: Path) -> Snapstore:
    """The same repository, for the store in a plain folder."""
    state = StateConfig(
        dir=str(folder),
        layout="plain",
        options={"task": STORE.task, "store": STORE.store},
        application=STORE.application,
    )
    config = Config(sections=msgspec.structs.replace(repository.config.sections, state=state))
    return Snapstore(config, repository.repository, clock=repository.clock)


def as_rocksdb(repository: Snapstore, snapshot: Snapshot, target: Path) -> int:
    return restore_as(repository, snapshot.id, target, allow_unchecked_changelog=True)


def test_a_memory_snapshot_becomes_a_rocksdb_store_and_comes_back(
    repository: Snapstore, taken: Snapshot, tmp_path: Path
) -> None:
    target = tmp_path / "rocksdb"
    assert as_rocksdb(repository, taken, target) == len(PAIRS)
    with RocksDBBackend().open_view(target, ".") as view:
        assert dict(view.scan(".", "default")) == PAIRS
        digest = entries_digest(view.scan(".", "default"))

    report = plain(repository, target).snapshot()
    assert not report.failed
    (outcome,) = report.outcomes
    assert outcome.snapshot is not None
    description = outcome.snapshot.description
    assert (description.backend, description.applied_offset) == ("rocksdb", len(PAIRS) + 1)

    with MemoryStore.restore(
        repository,
        STORE,
        tmp_path / "back",
        ref=outcome.snapshot.id,
        changelog=CHANGELOG,
        allow_unchecked_changelog=True,
    ) as store:
        assert entries_digest(store.range()) == digest
        assert store.positions == {CHANGELOG: len(PAIRS) + 1}
        store.apply(record(len(PAIRS) + 2, b"0001", None))
        store.snapshot(repository)
        store.delete(b"0002")
        assert store.snapshot(repository).new_bytes < 1000


def test_the_target_of_a_conversion_must_be_empty(
    repository: Snapstore, taken: Snapshot, tmp_path: Path
) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "something").touch()
    with pytest.raises(TargetNotEmptyError):
        as_rocksdb(repository, taken, tmp_path / "target")


def test_a_store_type_that_cannot_be_written_is_named(
    repository: Snapstore, taken: Snapshot, tmp_path: Path
) -> None:
    with pytest.raises(PluginError, match="'files' cannot be written"):
        restore_as(repository, taken.id, tmp_path / "target", backend="files")
    assert not (tmp_path / "target").exists()


def test_pairs_that_are_not_plain_are_not_converted(repository: Snapstore, tmp_path: Path) -> None:
    target = tmp_path / "store"
    with RocksDBBackend().open_writer(target, ".") as writer:
        writer.create(".", ["default", "extra"])
        writer.write(".", {"default": [(b"a", b"1")], "extra": [(b"b", b"2")]})
    (target / ".snapstore-position.json").write_text('{"format": 1, "positions": []}')
    (outcome,) = plain(repository, target).snapshot().outcomes
    assert outcome.snapshot is not None
    with pytest.raises(NotReplayableError, match="column family extra is not empty"):
        MemoryStore.restore(repository, STORE, tmp_path / "memory")
    with pytest.raises(NotReplayableError, match="extra"):
        restore_as(repository, outcome.snapshot.id, tmp_path / "target", backend="memory")


@pytest.mark.parametrize("place", ["application", "state directory", "task", "below a task"])
def test_a_memory_snapshot_is_not_put_where_kafka_streams_keeps_its_state(
    repository: Snapstore, taken: Snapshot, tmp_path: Path, place: str
) -> None:
    application = tmp_path / "state" / "orders"
    (application / "0_1" / "rocksdb" / "counts").mkdir(parents=True)
    (application / "kafka-streams-process-metadata").write_text("{}")
    target = {
        "application": application,
        "state directory": tmp_path / "state",
        "task": application / "0_1",
        "below a task": application / "0_1" / "balances",
    }[place]
    with pytest.raises(RefusedError, match="never loads a store in memory") as refused:
        repository.restore([taken.id], target=target, replace=True, allow_unchecked_changelog=True)
    assert "Python programs" in (refused.value.hint or "")
    assert (application / "0_1" / "rocksdb" / "counts").is_dir()


def test_the_layout_of_kafka_streams_refuses_it_as_well(taken: Snapshot, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="from the changelog at every start"):
        KafkaStreamsLayout().check_target(tmp_path, taken.description)


def test_a_memory_snapshot_is_verified_like_any_other(
    repository: Snapstore, taken: Snapshot
) -> None:
    report = repository.verify([taken.id], read_data=True, open_store=True)
    assert not report.damage
    assert report.scanned_entries == len(PAIRS)


def test_a_store_of_pair_files_can_be_written_through_the_port(tmp_path: Path) -> None:
    backend = MemoryBackend()
    with backend.open_writer(tmp_path, "store") as writer:
        assert writer.databases == ()
        with pytest.raises(StoreNotFoundError):
            writer.get("store", "default", b"a")
        writer.create("store", ["default"])
        writer.write("store", {"default": [(b"a1", b"1"), (b"a2", b"2"), (b"b", b"3")]})
        writer.flush()
        writer.write("store", {"default": [(b"a3", b"4")]}, emptied={"default": [b"a"]})
        assert writer.entries("store", "default") == {b"a3": b"4", b"b": b"3"}
        assert [*writer.scan_from("store", "default", b"b")] == [(b"b", b"3")]
    with backend.open_view(tmp_path, "store") as view:
        assert dict(view.scan("store", "default")) == {b"a3": b"4", b"b": b"3"}
        with pytest.raises(StoreNotFoundError):
            view.entries("store", "other")
    assert len(list((tmp_path / "store").iterdir())) == 2
    with backend.open_writer(tmp_path, "store") as writer:
        writer.drop("store")
        assert writer.databases == ()
    assert not (tmp_path / "store").exists()

"""Finding stores and saying what a snapshot would hold."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.operations.discover import DiscoverReport, discover
from tests.support.fixtures import FixtureName, expected, unpack
from tests.support.state_dirs import holding_locks
from tests.support.streams_store import Pairs, make_key_value, some_pairs


def look(state_dir: Path, application: str | None = None) -> DiscoverReport:
    return discover(
        state_dir,
        application,
        layout=KafkaStreamsLayout(),
        backends={"rocksdb": RocksDBBackend()},
        clock=lambda: datetime.now(UTC),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ks440-alos", "ks400-eos"])
def test_every_store_of_a_real_application_is_found_with_the_end_of_its_changelog(
    tmp_path: Path, name: FixtureName
) -> None:
    application = unpack(name, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in application.rglob("*")}
    report = look(tmp_path)
    ends = expected(name).changelog_end_offsets
    seen = {
        f"{position.changelog.topic}-{position.changelog.partition}": position.applied_offset
        for store in report.stores
        for position in store.positions
    }
    assert len(report.stores) >= 7
    assert len(seen) >= 7
    for changelog, applied_offset in seen.items():
        if changelog in ends:
            assert ends[changelog] - 2 <= applied_offset < ends[changelog], changelog
    assert all(store.running is False for store in report.stores)
    assert all(store.size_bytes for store in report.stores if store.problem is None)
    assert {path: path.stat().st_mtime_ns for path in application.rglob("*")} == before


def test_an_unknown_offset_is_a_problem_with_a_reason_and_never_a_number(tmp_path: Path) -> None:
    unpack("ks440-alos-hot", tmp_path)
    report = look(tmp_path)
    unknown = [store for store in report.stores if store.problem is not None]
    assert unknown
    assert all(store.positions == () and store.problem for store in unknown)
    assert all(
        position.applied_offset >= 0 for store in report.stores for position in store.positions
    )


def test_a_running_application_is_said_to_run(tmp_path: Path) -> None:
    make_key_value(tmp_path, "0_0", "counts", Pairs(pairs=some_pairs(5), applied_offset=5))
    lock = tmp_path / "orders" / ".lock"
    lock.touch()
    with holding_locks([lock]):
        (store,) = look(tmp_path).stores
    assert store.running is True
    assert [position.applied_offset for position in store.positions] == [5]


def test_a_damaged_store_hides_no_other(tmp_path: Path) -> None:
    for task in ("0_10", "0_2"):
        make_key_value(tmp_path, task, "counts", Pairs(pairs=some_pairs(5), applied_offset=5))
    (tmp_path / "orders/0_2/rocksdb/counts/CURRENT").write_bytes(b"")
    damaged, sound = look(tmp_path, "orders").stores
    assert (damaged.location.store.task, sound.location.store.task) == ("0_2", "0_10")
    assert "CURRENT" in str(damaged.problem)
    assert sound.problem is None

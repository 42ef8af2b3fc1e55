"""Whole drills of a store made by hand, whose changelog lies in memory and can be cut at will."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import load_config
from snapstore.errors import SnapshotNotFoundError
from snapstore.model.identity import ChangelogPartition
from snapstore.operations.drill_report import DrilledStore
from snapstore.repository import keys
from snapstore.testing.changelog_contract import Written
from tests.support.log_in_memory import LogInMemory, LogRegistry
from tests.support.state_dirs import make_database
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, topic

pytestmark = pytest.mark.slow

STORE = "counts"
TASK = "0_0"


class Drilled:
    """One store; what was written to its log is what it should hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = LogInMemory()
        self.changelog: ChangelogPartition = self.log.create_as(topic(STORE))
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.rows: dict[bytes, bytes] = {}
        self._saved = 0
        settings = {
            "SNAPSTORE_REPOSITORY": str(folder / "repository"),
            "SNAPSTORE_KAFKA_BOOTSTRAP": "memory:1",
            "SNAPSTORE_CACHE_DIR": str(folder / "cache"),
            "HOME": str(folder),
        }
        self.config = load_config(env=settings)
        client.create(config=self.config).close()

    def open(self) -> Snapstore:
        return client.open(config=self.config, registry=LogRegistry(self.log))

    def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        now_ms = int(datetime.now(UTC).timestamp() * 1000)
        self.log.append(self.changelog, [Written(key, value, now_ms) for key, value in records])
        for key, value in records:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def save(self, rows: dict[bytes, bytes] | None = None) -> str:
        """Take a snapshot of a closed store that has applied all that is written."""
        end = self.log.inspect(self.changelog, now=datetime.now(UTC)).log_end
        self._saved += 1
        state_dir = self.folder / f"state{self._saved}"
        pairs = Pairs(pairs=self.rows if rows is None else rows, applied_offset=end - 1)
        make_key_value(state_dir, TASK, STORE, pairs)
        with self.open() as store:
            report = store.snapshot(state_dir)
        (outcome,) = report.outcomes
        assert outcome.snapshot is not None, outcome.error
        return outcome.snapshot.id

    def drill(self) -> DrilledStore:
        with self.open() as store:
            report = store.drill(application=APPLICATION, scratch=self.scratch)
        assert list(self.scratch.iterdir()) == []
        (drilled,) = report.stores
        return drilled


@pytest.fixture
def drilled(tmp_path: Path) -> Drilled:
    return Drilled(tmp_path)


def many(count: int, value: bytes) -> list[tuple[bytes, bytes | None]]:
    return [(f"k{number:04}".encode(), value) for number in range(count)]


def test_a_right_snapshot_and_its_tail_are_equal_to_a_rebuild(drilled: Drilled) -> None:
    drilled.write(many(100, b"old"))
    snapshot = drilled.save()
    drilled.write([(b"k0001", b"new"), (b"k0002", None), (b"x", b"1")])

    found = drilled.drill()

    assert (found.outcome, found.reason, found.snapshot_id) == ("equal", None, snapshot)
    assert found.comparison is not None
    assert found.comparison.pairs == len(drilled.rows) == 100
    (partition,) = found.partitions
    assert (partition.applied_offset, partition.end_offset) == (99, 103)
    assert (partition.replayed_records, partition.rebuilt_records) == (3, 103)
    assert found.behind_records == 3
    assert found.timing is not None
    assert found.timing.restored_bytes > 0


def test_records_of_an_aborted_transaction_are_in_neither(drilled: Drilled) -> None:
    drilled.write(many(10, b"old"))
    drilled.save()
    drilled.log.append_in_transaction(
        drilled.changelog, [Written(b"k0001", b"aborted", 1)], commit=False
    )
    drilled.write([(b"k0002", b"new")])
    found = drilled.drill()
    assert (found.outcome, found.partitions[0].replayed_records) == ("equal", 1)


def test_a_value_that_the_changelog_never_held_is_a_difference(drilled: Drilled) -> None:
    drilled.write(many(10, b"right"))
    drilled.save({**drilled.rows, b"k0004": b"wrong", b"phantom": b"never"})
    drilled.write([(b"k0001", b"new")])

    found = drilled.drill()

    assert (found.outcome, found.code) == ("differs", "drill_difference")
    assert found.comparison is not None
    assert found.comparison.different_keys == 2
    first, second = found.comparison.differences
    assert (first.key, first.kind) == (b"k0004".hex(), "values_differ")
    assert (first.restored, first.rebuilt) == (b"wrong".hex(), b"right".hex())
    assert (second.key, second.kind) == (b"phantom".hex(), "only_restored")
    assert found.reason is not None
    assert first.key in found.reason


def test_rows_whose_records_are_gone_from_the_log_are_said_and_not_missed(
    drilled: Drilled,
) -> None:
    drilled.write(many(50, b"old"))
    drilled.save()
    drilled.write([(b"k0040", b"new"), (b"k0041", None)])
    drilled.log.cut_start(drilled.changelog, 30)

    found = drilled.drill()

    assert found.outcome == "partly"
    assert found.reason == (
        "not compared: 30 pairs of which the changelog has no record any more: its start is gone"
    )
    assert found.partitions[0].rebuild_start == 30


def test_a_deletion_that_the_log_still_has_is_missed_although_its_start_is_gone(
    drilled: Drilled,
) -> None:
    drilled.write(many(50, b"old"))
    drilled.write([(b"k0001", None)])
    drilled.save({**drilled.rows, b"k0001": b"old"})
    drilled.log.cut_start(drilled.changelog, 30)

    found = drilled.drill()

    assert found.outcome == "differs"
    assert found.comparison is not None
    assert [each.key for each in found.comparison.differences] == [b"k0001".hex()]


def test_a_compacted_log_rebuilds_the_same(drilled: Drilled) -> None:
    drilled.write([*many(50, b"old"), *many(50, b"newer"), (b"k0001", None)])
    drilled.save()
    drilled.write([(b"k0003", b"newest")])
    drilled.log.compact(drilled.changelog)
    assert drilled.drill().outcome == "equal"


def test_a_damaged_newer_snapshot_is_found_although_an_older_one_is_right(
    drilled: Drilled,
) -> None:
    drilled.write(many(10, b"old"))
    good = drilled.save()
    drilled.write([(b"k0001", b"new")])
    bad = drilled.save()
    with drilled.open() as store:
        store.repository.storage.delete([keys.manifest(bad)])

    found = drilled.drill()

    assert (found.outcome, found.snapshot_id) == ("damaged", good)
    assert [each.snapshot_id for each in found.passed_over] == [bad]
    assert found.comparison is not None
    assert found.comparison.different_keys == 0


def test_a_topic_that_was_made_again_is_refused(drilled: Drilled) -> None:
    drilled.write(many(10, b"old"))
    drilled.save()
    drilled.log.create_as(topic(STORE))
    drilled.write(many(20, b"other"))
    found = drilled.drill()
    assert (found.outcome, found.code, found.timing) == ("refused", "topic_recreated", None)


def test_a_store_of_no_known_kind_is_skipped_with_the_reason(drilled: Drilled) -> None:
    drilled.write(many(10, b"old"))
    drilled.save()
    state_dir = drilled.folder / "odd"
    folder = make_key_value(state_dir, TASK, STORE, Pairs(pairs=drilled.rows, applied_offset=9))
    make_database(folder, {"default": {}, "offsets": {}, "ofItsOwn": {b"k": b"v"}})
    drilled.write([(b"k0001", b"new")])
    with drilled.open() as store:
        report = store.snapshot(state_dir, tags={"odd": "yes"}, capture="disk")
    assert not report.failed
    found = drilled.drill()
    assert (found.outcome, found.code) == ("skipped", "not_replayable")


def test_what_a_drill_has_measured_is_what_status_reckons_with(drilled: Drilled) -> None:
    drilled.write([(f"k{n:06}".encode(), random.Random(n).randbytes(100)) for n in range(12_000)])
    drilled.save()
    with drilled.open() as store:
        before = store.status()
        report = store.drill()
        after = store.status()
    timing = report.stores[0].timing
    assert timing is not None
    assert before.stores[0].restore_seconds is None
    assert after.rates is not None
    assert "measured by a drill on this host" in after.rates.origin
    assert after.rates.replay_records_per_second == 12_000 / timing.rebuild_seconds
    assert after.stores[0].restore_seconds == pytest.approx(
        (after.stores[0].size_bytes or 0) / after.rates.download_bytes_per_second
    )


def test_no_snapshot_is_not_found(drilled: Drilled) -> None:
    with drilled.open() as store, pytest.raises(SnapshotNotFoundError):
        store.drill(application="nobody")

"""A memory store with its snapshots."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from snapstore.client import Snapstore
from snapstore.errors import (
    ConfigError,
    IntegrityError,
    NoSpaceError,
    NotFoundError,
    NotReplayableError,
    RunInProgressError,
    SnapshotNotFoundError,
    TargetNotEmptyError,
    UncheckedChangelogError,
)
from snapstore.memory import MemoryStore
from snapstore.memory.saving import MOST_DELTAS
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from tests.memory.conftest import CHANGELOG, STORE, record

pytestmark = pytest.mark.slow


def restored(repository: Snapstore, work_dir: Path, ref: str | None = None) -> MemoryStore:
    return MemoryStore.restore(
        repository, STORE, work_dir, ref=ref, changelog=CHANGELOG, allow_unchecked_changelog=True
    )


def files_of(work_dir: Path) -> list[str]:
    return sorted(path.name[13:] for path in (work_dir / "files").glob("*.pairs"))


def test_a_store_comes_back_with_its_pairs_and_its_offset(
    repository: Snapstore, tmp_path: Path
) -> None:
    """G105: a store that leaves nothing on the application's disk carries its own offset."""
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        store.apply(record(1, b"b", b"2"))
        store.apply(record(2, b"a", None))
        snapshot = store.snapshot(repository, tags={"by": "test"})
    description = snapshot.description
    assert (description.store, description.backend) == (STORE, "memory")
    assert (description.applied_offset, description.tags) == (2, {"by": "test"})
    with restored(repository, tmp_path / "other") as other:
        assert dict(other.range()) == {b"b": b"2"}
        assert other.positions == {CHANGELOG: 2}
        assert (b"a" in other, b"b" in other, len(other), other.get(b"b")) == (
            False,
            True,
            1,
            b"2",
        )


def test_only_what_changed_is_sent(repository: Snapstore, tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for n in range(2000):
            store.apply(record(n, b"%05d" % n, b"x" * 100))
        first = store.snapshot(repository)
        store.apply(record(2000, b"00007", b"changed"))
        store.apply(record(2001, b"00008", None))
        second = store.snapshot(repository)
    assert first.new_bytes > 200_000
    assert second.new_bytes < 1000
    assert second.size_bytes > first.size_bytes
    with restored(repository, tmp_path / "old", first.id) as old:
        assert (old.get(b"00007"), old.positions[CHANGELOG]) == (b"x" * 100, 1999)
    with restored(repository, tmp_path / "new") as new:
        assert (new.get(b"00007"), new.get(b"00008"), len(new)) == (b"changed", None, 1999)


def test_deltas_that_outgrow_the_store_are_replaced_by_a_new_base(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        kinds = []
        for n in range(300):
            store.apply(record(n, b"%03d" % (n % 100), b"%d" % n))
            if n % 20 == 19:
                store.snapshot(repository)
                kinds.append(files_of(tmp_path / "work"))
    assert ["base.pairs"] in kinds[5:]
    assert max(map(len, kinds)) < 9
    with restored(repository, tmp_path / "other") as other:
        assert dict(other.range()) == {b"%03d" % n: b"%d" % (200 + n) for n in range(100)}


def test_many_small_deltas_become_one(repository: Snapstore, tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for n in range(1000):
            store.apply(record(n, b"%04d" % n, b"v"))
        store.save()
        for n in range(1000, 1000 + MOST_DELTAS + 5):
            store.apply(record(n, b"new", b"%d" % n))
            store.save()
        assert len(files_of(tmp_path / "work")) < 8
        store.snapshot(repository)
    with restored(repository, tmp_path / "other") as other:
        assert (len(other), other.get(b"new")) == (1001, b"%d" % (1000 + MOST_DELTAS + 4))


def test_a_snapshot_in_the_background_is_of_the_moment_it_was_asked_for(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for n in range(20_000):
            store.apply(record(n, b"%05d" % n, b"old"))
        future = store.snapshot_in_background(repository)
        for n in range(20_000, 40_000):
            store.apply(record(n, b"%05d" % (n - 20_000), None if n % 2 else b"new"))
        assert future.result().description.applied_offset == 19_999
        assert store.snapshot(repository).description.applied_offset == 39_999
    first = repository.list().snapshots[-1]
    with restored(repository, tmp_path / "old", first.id) as old:
        assert dict(old.range()) == {b"%05d" % n: b"old" for n in range(20_000)}
    with restored(repository, tmp_path / "new") as new:
        assert dict(new.range()) == {b"%05d" % n: b"new" for n in range(0, 20_000, 2)}


def test_two_snapshots_at_once_are_refused(repository: Snapstore, tmp_path: Path) -> None:
    go_on = threading.Event()

    def wait(point: str) -> None:
        assert go_on.wait(30), point

    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG, reached=wait) as store:
        store.put(b"a", b"1")
        future = store.snapshot_in_background(repository)
        with pytest.raises(RunInProgressError):
            store.snapshot(repository)
        go_on.set()
        assert future.result().files == 2
        assert store.snapshot(repository).description.store == STORE


def test_a_snapshot_that_fails_loses_nothing_and_the_next_one_holds_it(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        store.snapshot(repository)
        store.apply(record(1, b"b", b"2"))
        shutil.move(tmp_path / "repository", tmp_path / "away")
        with pytest.raises(NotFoundError):
            store.snapshot(repository)
        store.apply(record(2, b"c", b"3"))
        shutil.move(tmp_path / "away", tmp_path / "repository")
        store.snapshot(repository)
    with restored(repository, tmp_path / "other") as other:
        assert dict(other.range()) == {b"a": b"1", b"b": b"2", b"c": b"3"}


def test_a_save_that_fails_loses_nothing_either(repository: Snapstore, tmp_path: Path) -> None:
    def fail(point: str) -> None:
        if point in failing:
            failing.remove(point)
            raise OSError(28, "No space left on device")

    failing: list[str] = []
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG, reached=fail) as store:
        expected = {}
        points = ("piece written", "file complete", "file named", "name durable", "offsets noted")
        for n, point in enumerate((*points, "leftovers removed", *points)):
            store.apply(record(n, b"%d" % n, b"v"))
            expected[b"%d" % n] = b"v"
            failing.append(point)
            with pytest.raises((OSError, NoSpaceError)):
                store.snapshot(repository)
        store.snapshot(repository)
    with restored(repository, tmp_path / "other") as other:
        assert dict(other.range()) == expected


def test_nothing_new_makes_no_new_file_and_no_new_snapshot_if_asked(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        first = store.snapshot(repository)
        assert store.snapshot(repository, skip_unchanged=True) == first
        assert store.snapshot(repository).new_files == 0
        assert files_of(tmp_path / "work") == ["base.pairs"]


def test_an_offset_that_moves_alone_is_recorded(repository: Snapstore, tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.put(b"a", b"1")
        store.note(10)
        store.snapshot(repository)
        store.note(20)
        assert store.snapshot(repository).description.applied_offset == 20
    with restored(repository, tmp_path / "other") as other:
        assert other.positions == {CHANGELOG: 20}


def test_a_store_of_several_changelog_partitions_keeps_each_offset(
    repository: Snapstore, tmp_path: Path
) -> None:
    second = ChangelogPartition("billing-balances", 1)
    with MemoryStore(STORE, tmp_path / "work") as store:
        store.apply(record(5, b"a", b"1"), CHANGELOG)
        store.apply(record(9, b"b", b"2"), second)
        store.snapshot(repository)
        with pytest.raises(ValueError, match="name the changelog"):
            store.note(3)
    with restored(repository, tmp_path / "other") as other:
        assert other.positions == {CHANGELOG: 5, second: 9}


def test_an_empty_store_is_a_snapshot_too(repository: Snapstore, tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.snapshot(repository)
        store.apply(record(0, b"a", b"1"))
        store.snapshot(repository)
        store.apply(record(1, b"a", None))
        store.snapshot(repository)
    with restored(repository, tmp_path / "other") as other:
        assert (len(other), other.positions) == (0, {CHANGELOG: 1})


def test_a_store_goes_on_where_an_earlier_process_saved_it(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for n in range(100):
            store.apply(record(n, b"%03d" % n, b"v"))
        store.snapshot(repository)
        store.apply(record(100, b"lost", b"with the process"))
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as again:
        assert again.positions == {CHANGELOG: 99}
        again.apply(record(100, b"new", b"v"))
        assert again.snapshot(repository).new_bytes < 500
    with restored(repository, tmp_path / "other") as other:
        assert (len(other), other.get(b"lost")) == (101, None)


def test_a_restored_store_goes_on_with_small_snapshots(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for n in range(1000):
            store.apply(record(n, b"%03d" % n, b"v" * 50))
        store.snapshot(repository)
    shutil.rmtree(tmp_path / "work")
    with restored(repository, tmp_path / "work") as store:
        store.apply(record(1000, b"new", b"v"))
        assert store.snapshot(repository).new_bytes < 500


def test_a_lost_work_folder_costs_one_whole_snapshot(repository: Snapstore, tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        store.snapshot(repository)
    shutil.rmtree(tmp_path / "work")
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        assert store.snapshot(repository).files == 2


def test_one_folder_is_for_one_store_at_a_time(tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work"), pytest.raises(RunInProgressError):
        MemoryStore(STORE, tmp_path / "work")
    MemoryStore(STORE, tmp_path / "work").close()


def test_what_was_saved_is_not_given_up_without_being_asked(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        store.snapshot(repository)
        store.apply(record(1, b"b", b"2"))
        store.save()
    with pytest.raises(TargetNotEmptyError):
        restored(repository, tmp_path / "work")
    with MemoryStore.restore(
        repository, STORE, tmp_path / "work", replace=True, allow_unchecked_changelog=True
    ) as back:
        assert dict(back.range()) == {b"a": b"1"}


def test_a_snapshot_without_a_fence_is_restored_only_if_that_is_accepted(
    repository: Snapstore, tmp_path: Path
) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        store.apply(record(0, b"a", b"1"))
        store.snapshot(repository)
    with pytest.raises(UncheckedChangelogError):
        MemoryStore.restore(repository, STORE, tmp_path / "other")
    assert not files_of(tmp_path / "other")


def test_no_snapshot_and_the_snapshot_of_another_store_are_told_apart(
    repository: Snapstore, tmp_path: Path
) -> None:
    with pytest.raises(SnapshotNotFoundError):
        restored(repository, tmp_path / "other")
    with MemoryStore(StoreId("billing", "0", "other"), tmp_path / "work") as store:
        snapshot = store.snapshot(repository)
    with pytest.raises(ConfigError, match="billing/0/other"):
        restored(repository, tmp_path / "other", snapshot.id)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work") as store:
        store.put(b"a", b"1")
        store.save()
        store.put(b"b", b"2")
        store.save()
    newest = sorted((tmp_path / "work" / "files").glob("*.pairs"))
    newest[0].unlink()
    with pytest.raises(IntegrityError, match="builds on"):
        MemoryStore(STORE, tmp_path / "work")
    body = bytearray(newest[1].read_bytes())
    body[-1] ^= 1
    newest[1].write_bytes(body)
    with pytest.raises(IntegrityError):
        MemoryStore(STORE, tmp_path / "work")


def test_a_record_without_a_key_is_of_no_store(tmp_path: Path) -> None:
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        with pytest.raises(NotReplayableError, match="offset 4"):
            store.apply(ChangelogRecord(4, None, b"v", 0))
        assert store.positions == {}


def test_closing_waits_for_a_snapshot_that_is_being_taken(
    repository: Snapstore, tmp_path: Path
) -> None:
    store = MemoryStore(
        STORE, tmp_path / "work", changelog=CHANGELOG, reached=lambda _: time.sleep(0.02)
    )
    store.put(b"a", b"1")
    future = store.snapshot_in_background(repository)
    store.close()
    assert future.result(timeout=1).files == 2

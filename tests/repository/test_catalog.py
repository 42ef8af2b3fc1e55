"""Publishing, listing and finding snapshots."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import (
    AmbiguousRefError,
    ConflictError,
    IntegrityError,
    ManifestInvalidError,
    SnapshotNotFoundError,
    StorageError,
    UnknownOffsetError,
)
from snapstore.model.identity import StoreId
from snapstore.model.reference import parse_reference
from snapstore.model.snapshot import Snapshot
from snapstore.ports import ObjectStat
from snapstore.repository import Repository, encoding, keys
from snapstore.storages.local import LocalStorage
from tests.support.repository import COUNTS, NOON, describe, make_repository, publish

MINUTE = timedelta(minutes=1)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


def find(repository: Repository, ref: str) -> Snapshot:
    return repository.catalog.load(repository.catalog.find(parse_reference(ref)))


def test_what_is_published_is_listed_and_can_be_read(repository: Repository) -> None:
    listed = publish(repository, describe(offsets=(2147483648,)))
    assert repository.catalog.list_all().snapshots == (listed,)
    assert listed.applied_offset == 2147483648
    snapshot = repository.catalog.load(listed)
    assert snapshot.description.applied_offset == 2147483648
    assert snapshot.id == listed.id


def test_publishing_the_same_again_is_no_error(repository: Repository) -> None:
    listed = publish(repository, describe())
    assert publish(repository, describe()) == listed
    assert len(repository.catalog.list_all().snapshots) == 1


def test_an_entry_is_never_written_over(repository: Repository) -> None:
    listed = publish(repository, describe())
    snapshot = repository.catalog.load(listed)
    other = msgspec.structs.replace(snapshot.description, writer="somebody else")
    with pytest.raises(ConflictError):
        repository.catalog.publish(msgspec.structs.replace(snapshot, description=other))
    assert repository.catalog.load(listed) == snapshot


def test_an_entry_that_a_repair_has_put_there_meanwhile_is_the_same_one(
    repository: Repository,
) -> None:
    listed = publish(repository, describe())
    snapshot = repository.catalog.load(listed)
    assert repository.catalog.publish(msgspec.structs.replace(snapshot, new_bytes=99)) == listed
    assert repository.catalog.load(listed) == snapshot


def test_two_hosts_that_publish_at_once_both_succeed_g51(repository: Repository) -> None:
    for number in range(10):
        publish(repository, describe(offsets=(number,)))
    made = [describe(offsets=(50,), instance=f"host-{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda description: publish(repository, description), made))
    assert len(repository.catalog.list_store(COUNTS).snapshots) == 18


class Deaf(LocalStorage):
    """Stores what it is given, and then the connection breaks."""

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        super().put(key, body, if_absent=if_absent)
        if key.startswith(keys.CATALOG):
            raise StorageError("connection reset")


class Dead(LocalStorage):
    """The connection breaks before anything is stored."""

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        if key.startswith(keys.CATALOG):
            raise StorageError("connection reset")
        super().put(key, body, if_absent=if_absent)


def test_an_answer_that_was_lost_is_not_a_failure(tmp_path: Path) -> None:
    made = make_repository(tmp_path)
    listed = publish(Repository(Deaf(tmp_path.as_uri()), made.marker), describe())
    assert made.catalog.list_all().snapshots == (listed,)


def test_a_request_that_was_lost_is_one(tmp_path: Path) -> None:
    made = make_repository(tmp_path)
    with pytest.raises(StorageError):
        publish(Repository(Dead(tmp_path.as_uri()), made.marker), describe())
    assert made.catalog.list_all().snapshots == ()


def test_a_position_that_means_unknown_never_enters_the_catalog_g59(repository: Repository) -> None:
    with pytest.raises(UnknownOffsetError):
        publish(repository, describe(offsets=(5, -4)))
    assert repository.catalog.list_all().snapshots == ()


def test_the_old_owner_that_finished_later_is_not_the_latest_g65(repository: Repository) -> None:
    publish(repository, describe(offsets=(900,), captured_at=NOON + 5 * MINUTE, instance="a"))
    new = publish(repository, describe(offsets=(1200,), captured_at=NOON + MINUTE, instance="b"))
    assert repository.catalog.newest_of(COUNTS) == new
    assert find(repository, "orders/0_1/counts").description.instance == "b"
    assert len(repository.catalog.list_all().snapshots) == 2


def test_a_snapshot_is_found_by_what_it_is_of_from_any_host_g66(repository: Repository) -> None:
    listed = publish(repository, describe(instance="app-0.svc.ns.cluster.local"))
    for ref in (
        "orders/0_1/counts",
        "orders/counts:1",
        "orders-counts-changelog:0",
        listed.id[:4],
        listed.id.upper(),
        "orders/0_1/counts@100",
        "orders/0_1/counts@2026-05-04T12:00:00Z",
    ):
        assert repository.catalog.find(parse_reference(ref)) == listed, ref


def test_at_an_offset_or_a_time_the_newest_not_beyond_it_is_meant(repository: Repository) -> None:
    for number, offset in enumerate((100, 200, 300)):
        publish(repository, describe(offsets=(offset,), captured_at=NOON + number * MINUTE))
    found = {
        ref: find(repository, ref).description.applied_offset
        for ref in (
            "orders/0_1/counts@250",
            "orders/counts:1@200",
            "orders-counts-changelog:0@199",
            "orders/0_1/counts@2026-05-04T12:01:30Z",
            "orders-counts-changelog:0@2026-05-04T14:01:00+02:00",
        )
    }
    assert list(found.values()) == [200, 200, 100, 200, 200]
    with pytest.raises(SnapshotNotFoundError):
        find(repository, "orders/0_1/counts@99")


def test_task_0_1_does_not_reach_into_task_0_10_g83(repository: Repository) -> None:
    short = publish(repository, describe())
    other = publish(repository, describe(StoreId("orders", "0_10", "counts"), offsets=(999,)))
    assert repository.catalog.list_store(COUNTS).snapshots == (short,)
    assert repository.catalog.find(parse_reference("orders/counts:1")) == short
    assert repository.catalog.find(parse_reference("orders/counts:10")) == other
    repository.catalog.remove([short])
    assert repository.catalog.list_all().snapshots == (other,)
    with pytest.raises(SnapshotNotFoundError):
        find(repository, "orders/0_1/counts")


def test_a_name_that_fits_two_stores_names_both(repository: Repository) -> None:
    publish(repository, describe())
    publish(repository, describe(StoreId("orders", "1_1", "counts")))
    with pytest.raises(AmbiguousRefError) as caught:
        find(repository, "orders/counts:1")
    assert caught.value.facts["candidates"] == ["orders/0_1/counts", "orders/1_1/counts"]


def test_an_id_that_fits_two_snapshots_names_both(repository: Repository) -> None:
    by_start: dict[str, str] = {}
    for offset in range(2000):
        listed = publish(repository, describe(offsets=(offset,)))
        twin = by_start.setdefault(listed.id[:4], listed.id)
        if twin != listed.id:
            break
    with pytest.raises(AmbiguousRefError) as caught:
        find(repository, twin[:4])
    assert len(caught.value.facts["candidates"]) == 2  # type: ignore[arg-type]
    assert find(repository, twin).id == twin


def test_an_id_with_a_forged_entry_beside_its_own_is_told_as_that_h23(
    repository: Repository, tmp_path: Path
) -> None:
    listed = publish(repository, describe())
    forged = msgspec.structs.replace(listed, captured_at=listed.captured_at + timedelta(days=3650))
    LocalStorage(tmp_path.as_uri()).put(keys.entry(forged), b"{}")
    with pytest.raises(AmbiguousRefError) as caught:
        find(repository, listed.id)
    assert caught.value.hint is not None
    assert "snapstore repair" in caught.value.hint


def test_an_offset_of_a_store_with_several_partitions_needs_its_partition(
    repository: Repository,
) -> None:
    store = StoreId("orders", "global", "rates")
    publish(repository, describe(store, offsets=(10, 500), topic="rates"))
    with pytest.raises(AmbiguousRefError, match="several changelog partitions"):
        find(repository, "orders/global/rates@600")
    assert find(repository, "rates:1@500").description.store == store
    with pytest.raises(SnapshotNotFoundError):
        find(repository, "rates:1@499")
    (listed,) = repository.catalog.list_all().snapshots
    assert (listed.applied_offset, listed.changelogs) == (None, 2)


@pytest.mark.parametrize("content", [b'{"ver', b"{}", b""])
def test_a_damaged_entry_is_listed_and_is_damage_when_read_g50(
    repository: Repository, content: bytes
) -> None:
    old, new = publish(repository, describe()), publish(repository, describe(offsets=(200,)))
    repository.storage.put(keys.entry(new), content)
    assert repository.catalog.list_all().snapshots == (new, old)
    with pytest.raises(ManifestInvalidError):
        repository.catalog.load(new)
    with pytest.raises(IntegrityError):
        find(repository, "orders-counts-changelog:0")
    assert repository.catalog.load(old).description.applied_offset == 100


def test_damage_of_one_store_does_not_hide_another(repository: Repository) -> None:
    other = StoreId("orders", "0_0", "sums")
    publish(repository, describe(other, topic="sums"))
    damaged = publish(repository, describe(other, offsets=(999,), topic="sums"))
    repository.storage.put(keys.entry(damaged), b"{}")
    listed = publish(repository, describe())
    assert repository.catalog.find(parse_reference("orders-counts-changelog:0")) == listed


def test_an_entry_under_another_key_is_damage(repository: Repository) -> None:
    listed = publish(repository, describe())
    moved = msgspec.structs.replace(listed, store=StoreId("payments", "0_1", "counts"))
    repository.storage.put(keys.entry(moved), encoding.encode(repository.catalog.load(listed)))
    with pytest.raises(ManifestInvalidError, match="key"):
        repository.catalog.load(moved)


def test_foreign_keys_are_reported_and_stop_nothing(repository: Repository) -> None:
    listed = publish(repository, describe())
    stray = f"{keys.store_prefix(COUNTS)}README.txt"
    repository.storage.put(stray, b"do not delete")
    listing = repository.catalog.list_all()
    assert (listing.snapshots, listing.foreign) == ((listed,), (stray,))


class Broken(LocalStorage):
    """Cannot be listed."""

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        raise StorageError("503 SlowDown", prefix=prefix, start_after=start_after)


def test_a_listing_that_failed_is_never_no_snapshot_g49(tmp_path: Path) -> None:
    made = make_repository(tmp_path)
    publish(made, describe())
    broken = Repository(Broken(tmp_path.as_uri()), made.marker)
    for look in (
        lambda: broken.catalog.newest_of(COUNTS),
        lambda: broken.catalog.list_all(),
        lambda: find(broken, "orders/0_1/counts"),
        lambda: find(broken, "orders-counts-changelog:0"),
    ):
        with pytest.raises(StorageError):
            look()


@pytest.mark.slow
def test_more_than_a_page_of_entries_is_listed_whole_g82(repository: Repository) -> None:
    for offset in range(1001):
        publish(repository, describe(offsets=(offset,)))
    listing = repository.catalog.list_store(COUNTS)
    assert len(listing.snapshots) == 1001
    assert listing.snapshots[0].applied_offset == 1000
    repository.catalog.remove(listing.snapshots)
    assert repository.catalog.list_all().snapshots == ()


def test_names_with_blanks_and_signs_are_kept_g84(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "team a+b")
    for name in ("c++", "a b", "100%", "x%2By", "é", "a=b&c"):
        store = StoreId("my app", "0_1", name)
        publish(repository, describe(store))
        assert find(repository, f"my app/0_1/{name}").description.store == store
    assert len(repository.catalog.list_application("my app").snapshots) == 6


def test_pins_are_set_once_and_taken_away(repository: Repository) -> None:
    listed = publish(repository, describe())
    assert repository.pins.add(listed.id, pinned_at=NOON, reason="before the upgrade")
    assert not repository.pins.add(listed.id, pinned_at=NOON)
    assert repository.pins.all() == {listed.id}
    repository.pins.remove(listed.id)
    repository.pins.remove(listed.id)
    assert repository.pins.all() == frozenset()

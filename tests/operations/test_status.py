"""What is told of snapshots when there is no Kafka to ask: ages, and what is missing."""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import StorageError
from snapstore.model.freshness import FreshnessReport, Rates, StoreFreshness, Thresholds
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import FileEntry
from snapstore.model.store import BytesSource
from snapstore.operations.status import StatusOptions, status
from snapstore.repository import Repository, keys
from snapstore.testing.faults import Fault, FaultyStorage, Instead, timed_out
from tests.support.repository import (
    COUNTS,
    NOON,
    describe,
    layout_of,
    make_repository,
    publish,
)

HOUR = timedelta(hours=1)
NOW = NOON + 10 * HOUR


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


def save(
    repository: Repository, offset: int, *, age: timedelta, offsets: tuple[int, ...] | None = None
) -> ListedSnapshot:
    """A snapshot of one table, whose blob is there."""
    content = b"table" * offset
    sha256 = hashlib.sha256(content).hexdigest()
    stored = repository.begin_run(f"r{offset}").put(BytesSource(content), sha256, {})
    entry = FileEntry(
        name=f"rocksdb/counts/{offset:06}.sst",
        size=len(content),
        mode=0o644,
        sha256=sha256,
        blob=stored.name,
    )
    description = describe(offsets=(offset,) if offsets is None else offsets, captured_at=NOW - age)
    return publish(repository, description, (entry,))


def drop_blobs(repository: Repository, listed: ListedSnapshot) -> None:
    manifest = repository.manifests.load(listed.id)
    names = [keys.blob(entry.blob) for entry in manifest.files if entry.blob is not None]
    repository.storage.delete(names)


def look(
    repository: Repository,
    items: Sequence[ListedSnapshot] | None = None,
    thresholds: Thresholds | None = None,
    *,
    rates: Rates | None = None,
) -> StoreFreshness:
    listed = repository.catalog.list_store(COUNTS).snapshots if items is None else items
    options = StatusOptions(thresholds=thresholds or Thresholds(), rates=rates)
    report = status({COUNTS: listed}, repository, None, layout_of, lambda: NOW, options)
    (store,) = report.stores
    return store


def test_without_kafka_the_age_is_told_and_what_is_not_known(repository: Repository) -> None:
    save(repository, 100, age=3 * HOUR)
    newest = save(repository, 200, age=2 * HOUR)

    found = look(repository)

    assert (found.standing, found.used, found.age) == ("unchecked", newest, 2 * HOUR)
    assert (found.snapshots, found.size_bytes) == (2, 1000)
    assert found.lag_records is None
    assert found.restore_seconds is None
    assert found.usable_until is None
    assert found.reason is not None
    assert found.reason.startswith("Kafka is not configured")
    assert [each.applied_offset for each in found.partitions] == [200]


def test_a_store_without_a_snapshot_is_named_as_that(repository: Repository) -> None:
    found = look(repository, [])
    assert (found.standing, found.code) == ("none", "snapshot_not_found")
    assert found.over == ("it has no usable snapshot",)


def test_a_damaged_newest_snapshot_gives_way_to_the_last_good_one(repository: Repository) -> None:
    good = save(repository, 100, age=3 * HOUR)
    bad = save(repository, 200, age=HOUR)
    drop_blobs(repository, bad)

    found = look(repository, thresholds=Thresholds(max_age=2 * HOUR))

    assert (found.newest, found.used, found.age) == (bad, good, 3 * HOUR)
    (passed,) = found.passed_over
    assert (passed.snapshot_id, passed.code) == (bad.id, "integrity")
    assert "is missing" in passed.reason
    assert found.over == ("3 h 00 min old, more than 2 h 00 min",)


def test_a_snapshot_that_is_taken_out_meanwhile_is_no_damaged_one(repository: Repository) -> None:
    older = save(repository, 100, age=3 * HOUR)
    newer = save(repository, 200, age=HOUR)
    repository.catalog.remove([newer])
    drop_blobs(repository, newer)
    found = look(repository, [newer, older])
    assert (found.standing, found.used, found.passed_over) == ("unchecked", older, ())


def test_a_store_whose_snapshots_are_all_damaged_has_none_to_use(repository: Repository) -> None:
    for offset in (100, 200, 300):
        drop_blobs(repository, save(repository, offset, age=HOUR))

    found = look(repository)

    assert (found.standing, found.used, found.snapshots) == ("unusable", None, 3)
    assert len(found.passed_over) == 3
    assert found.over == ("it has no usable snapshot",)


def test_a_damaged_catalog_entry_is_passed_over(repository: Repository) -> None:
    good = save(repository, 100, age=3 * HOUR)
    bad = save(repository, 200, age=HOUR)
    key = keys.entry(bad)
    repository.storage.delete([key])
    repository.storage.put(key, b"{}")
    found = look(repository)
    assert (found.used, [each.snapshot_id for each in found.passed_over]) == (good, [bad.id])


def test_a_store_without_a_changelog_needs_no_kafka(repository: Repository) -> None:
    listed = save(repository, 1, age=HOUR, offsets=())
    found = look(
        repository,
        rates=Rates(download_bytes_per_second=1, replay_records_per_second=1, origin="given"),
    )
    assert (found.standing, found.used, found.reason) == ("usable", listed, None)
    assert (found.lag_records, found.restore_seconds) == (0, 5.0)


def test_a_capture_time_ahead_of_the_clock_is_no_age(repository: Repository) -> None:
    save(repository, 100, age=-HOUR)
    found = look(repository)
    assert found.age == timedelta()
    assert any("ahead of this clock" in sentence for sentence in found.advice)


def test_a_storage_that_cannot_be_read_is_no_missing_snapshot(repository: Repository) -> None:
    listed = save(repository, 100, age=HOUR)
    failing = FaultyStorage(repository.storage, [Fault("stat", Instead(timed_out()))])
    with pytest.raises(StorageError):
        look(Repository.open(failing), [listed])


def test_every_store_is_reported_in_natural_order(repository: Repository) -> None:
    stores = [StoreId("orders", f"0_{number}", "counts") for number in (10, 9, 2)]
    for store in stores:
        publish(repository, msgspec.structs.replace(describe(store), captured_at=NOW))
    listed = repository.catalog.list_all().snapshots
    report: FreshnessReport = status(
        {item.store: [item] for item in listed},
        repository,
        None,
        layout_of,
        lambda: NOW,
        StatusOptions(),
    )
    assert [each.store.task for each in report.stores] == ["0_2", "0_9", "0_10"]

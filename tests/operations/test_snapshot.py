"""Taking snapshots: what is stored, what is reused, and what happens when things change."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import (
    CaptureError,
    ConfigError,
    RefusedError,
    StorageError,
    StoreChangedError,
    StoreNotFoundError,
    UnknownOffsetError,
)
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.plain import SIDE_FILE, PlainLayout, PlainOptions
from snapstore.model.report import Advanced, Event, StoreFinished, StoreStarted
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.operations.snapshot import SnapshotOptions
from snapstore.operations.snapshot_plan import Selection, plan_snapshot
from snapstore.ports import Discovery, ObjectStorage, StoreView
from snapstore.repository import Repository, keys
from snapstore.storages.local import LocalStorage
from snapstore.storages.s3 import S3Storage
from snapstore.testing.faults import Afterwards, Fault, FaultyStorage, Instead, slow_down, timed_out
from tests.support.folder_store import write_store
from tests.support.moto import make_bucket, moto_server
from tests.support.repository import NOON
from tests.support.snapshot_lab import SnapshotLab
from tests.support.state_dirs import holding_locks
from tests.support.streams_store import (
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
    write_database,
)

MIB = 1 << 20


def pattern(seed: str, size: int = MIB) -> bytes:
    return (seed.encode() * (size // len(seed) + 1))[:size]


def streams_lab(folder: Path, *, cached: bool = True) -> SnapshotLab:
    return SnapshotLab(
        folder,
        layout=KafkaStreamsLayout(),
        backends={"rocksdb": RocksDBBackend()},
        cached=cached,
    )


def test_a_snapshot_holds_every_file_and_the_offset_that_was_noted(tmp_path: Path) -> None:
    files = {"a.sst": pattern("a"), "empty.log": b"", "big.sst": pattern("xyz", 3 * MIB + 5)}
    state = write_store(tmp_path / "counts", files, 2147483648)
    lab = SnapshotLab(tmp_path)
    outcome = lab.save_one(state)
    assert outcome.status == "stored"
    assert outcome.snapshot is not None
    assert outcome.snapshot.description.applied_offset == 2147483648
    assert outcome.snapshot.description.source == "closed"
    assert (outcome.new_files, outcome.reused_files) == (3, 0)
    assert outcome.new_bytes == outcome.snapshot.new_bytes == 4 * MIB + 5
    (content,) = lab.contents()
    assert {name: content[name] for name in files} == files
    assert content.keys() == files.keys() | {SIDE_FILE}


@pytest.mark.parametrize("cached", [True, False])
def test_a_second_snapshot_of_an_unchanged_store_sends_no_table_g38(
    tmp_path: Path, cached: bool
) -> None:
    folder = make_key_value(
        tmp_path / "state", "0_1", "counts", Pairs(pairs=some_pairs(5000), applied_offset=10)
    )
    lab = streams_lab(tmp_path, cached=cached)
    first = lab.save_one(tmp_path / "state")
    assert (first.same_content, first.reused_files) == (False, 0)
    assert first.new_files > 0
    second = lab.save_one(tmp_path / "state")
    assert (second.status, second.same_content) == ("stored", True)
    assert (second.new_files, second.new_bytes) == (0, 0)
    assert second.reused_bytes == first.new_bytes
    more = Pairs(pairs=some_pairs(500, start=9000), applied_offset=20)
    write_database(folder, more, "orders-counts-changelog", "0_1")
    third = lab.save_one(tmp_path / "state")
    assert third.reused_files >= 1
    assert 0 < third.new_bytes < first.new_bytes
    offsets = [item.applied_offset for item in lab.repository.catalog.list_all().snapshots]
    assert offsets == [20, 10, 10]


def test_tables_of_one_name_size_and_time_with_other_bytes_are_both_kept_g36(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one" / "counts", tmp_path / "two" / "counts"
    write_store(one, {"000024.sst": pattern("A")}, 100)
    write_store(two, {"000024.sst": pattern("B")}, 200)
    lab = SnapshotLab(tmp_path)
    lab.save(one)
    lab.save(two)
    assert [found["000024.sst"][:1] for found in lab.contents()] == [b"B", b"A"]


def test_a_table_that_was_written_over_in_place_with_its_time_set_back_is_seen(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"000024.sst": pattern("A")}, 100)
    lab = SnapshotLab(tmp_path)
    lab.save(state)
    inode = (state / "000024.sst").stat().st_ino
    write_store(state, {"000024.sst": pattern("B")}, 200)
    assert (state / "000024.sst").stat().st_ino == inode
    lab.save(state)
    assert [found["000024.sst"][:1] for found in lab.contents()] == [b"B", b"A"]


def test_two_histories_that_reuse_a_number_do_not_mix_g37(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"000031.sst": pattern("X")}, 200)
    lab = SnapshotLab(tmp_path)
    lab.save(state)
    write_store(state, {"000031.sst": pattern("Y")}, 150)
    lab.save(state)
    assert [found["000031.sst"][:1] for found in lab.contents()] == [b"X", b"Y"]


def test_nothing_is_published_for_an_unchanged_store_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 100)
    lab = SnapshotLab(tmp_path)
    skipping = SnapshotOptions(skip_unchanged=True)
    first = lab.save_one(state, skipping)
    second = lab.save_one(state, skipping)
    assert (first.status, second.status) == ("stored", "unchanged")
    assert second.same_as is not None
    assert first.snapshot is not None
    assert second.same_as.id == first.snapshot.id
    write_store(state, {}, 101)
    assert lab.save_one(state, skipping).status == "stored"
    assert len(lab.contents()) == 2


def test_a_tag_that_the_newest_snapshot_lacks_is_kept_with_a_new_entry_h41(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 100)
    lab = SnapshotLab(tmp_path)
    skipping = SnapshotOptions(skip_unchanged=True)
    lab.save_one(state, skipping)
    lab.tags = {"release": "42"}
    tagged = lab.save_one(state, skipping)
    assert (tagged.status, tagged.same_content, tagged.new_files) == ("stored", True, 0)
    assert tagged.snapshot is not None
    assert tagged.snapshot.description.tags == {"release": "42"}
    for tags in ({"release": "42"}, {}):
        lab.tags = tags
        assert lab.save_one(state, skipping).status == "unchanged"
    lab.tags = {"release": "43"}
    assert lab.save_one(state, skipping).status == "stored"


def test_a_store_named_twice_is_taken_once_g40(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 100)
    (location,) = SnapshotLab(tmp_path).layout.discover(state).locations
    plan = plan_snapshot(
        Discovery(locations=(location, location)), Selection(stores=("counts", "counts"))
    )
    assert plan.locations == (location,)


def test_a_plan_refuses_names_that_fit_nothing_and_stores_in_two_places(tmp_path: Path) -> None:
    lab = SnapshotLab(tmp_path)
    (one,) = lab.layout.discover(write_store(tmp_path / "a", {"a": b""}, 1)).locations
    (two,) = lab.layout.discover(write_store(tmp_path / "b", {"a": b""}, 1)).locations
    with pytest.raises(StoreNotFoundError, match="'cuonts'"):
        plan_snapshot(Discovery(locations=(one,)), Selection(stores=("cuonts",)))
    with pytest.raises(StoreNotFoundError):
        plan_snapshot(Discovery(locations=()), Selection())
    with pytest.raises(ConfigError, match="twice"):
        plan_snapshot(Discovery(locations=(one, two)), Selection())


def test_a_store_that_fails_stops_no_other_g32_g103(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for task in ("0_0", "0_1", "0_2"):
        make_key_value(state, task, "counts", Pairs(pairs=some_pairs(50), applied_offset=5))
    (state / "orders/0_1/rocksdb/counts/CURRENT").write_bytes(b"")
    lab = streams_lab(tmp_path)
    report = lab.save(state)
    assert [outcome.status for outcome in report.outcomes] == ["stored", "failed", "stored"]
    (failed,) = report.failed
    assert "CURRENT" in str(failed.error)
    assert {item.store.task for item in lab.repository.catalog.list_all().snapshots} == {
        "0_0",
        "0_2",
    }


def test_a_store_without_state_yet_is_no_failure_and_no_snapshot_g18(tmp_path: Path) -> None:
    folder = make_key_value(
        tmp_path / "state", "0_0", "counts", Pairs(pairs=some_pairs(5), applied_offset=900)
    )
    lab = streams_lab(tmp_path)
    lab.save(tmp_path / "state")
    plan = lab.plan(tmp_path / "state")
    for file in folder.iterdir():
        file.unlink()
    (outcome,) = lab.take(plan).outcomes
    assert (outcome.status, outcome.error) == ("empty", None)
    listing = lab.repository.catalog.list_all()
    assert [item.applied_offset for item in listing.snapshots] == [900]


class Removing(KafkaStreamsLayout):
    """Removes the directory of task 0_1 when its offsets are asked for."""

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        noted = super().noted_offsets(location)
        if location.store.task == "0_1":
            shutil.rmtree(location.task_dir)
        return noted


def test_a_task_that_is_removed_meanwhile_fails_and_the_others_are_kept_g32(
    tmp_path: Path,
) -> None:
    for task in ("0_0", "0_1", "0_2"):
        make_key_value(
            tmp_path / "state", task, "counts", Pairs(pairs=some_pairs(50), applied_offset=5)
        )
    lab = streams_lab(tmp_path)
    lab.layout = Removing()
    report = lab.save(tmp_path / "state")
    assert [outcome.status for outcome in report.outcomes] == ["stored", "failed", "stored"]
    assert report.failed[0].error is not None
    assert len(lab.contents()) == 2


def test_an_unchanged_store_costs_few_requests_however_many_files_it_has(
    tmp_path: Path,
) -> None:
    files = {f"{number}.sst": str(number).encode() for number in range(100)}
    state = write_store(tmp_path / "counts", files, 1)
    SnapshotLab(tmp_path).save(state)
    storage = faulty(tmp_path)
    outcome = SnapshotLab(tmp_path, storage=storage).save_one(state)
    assert (outcome.same_content, outcome.reused_files) == (True, 100)
    listed = [call.key for call in storage.calls if call.key.startswith(keys.BLOBS)]
    assert len(listed) == len(set(listed)) <= 256
    assert [
        (call.method, call.key.partition("/")[0])
        for call in storage.calls
        if not (call.method == "list" and call.key in listed)
    ] == [
        ("list", "condemned"),
        ("list", "catalog"),
        ("get", "manifests"),
        ("put", "manifests"),
        ("stat", "catalog"),
        ("put", "catalog"),
    ]


def test_a_file_that_may_not_be_read_fails_its_store_and_names_the_file_g35(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    (state / SIDE_FILE).unlink()
    (state / SIDE_FILE).mkdir()
    outcome = SnapshotLab(tmp_path).save_one(state)
    assert isinstance(outcome.error, CaptureError)
    assert SIDE_FILE in str(outcome.error)


def test_a_window_store_is_one_snapshot_of_all_its_segments(tmp_path: Path) -> None:
    segments = {
        0: Pairs(pairs=some_pairs(50), applied_offset=70),
        86400000: Pairs(pairs=some_pairs(50, start=100), applied_offset=90),
    }
    make_window(tmp_path / "state", "0_1", "windows", segments)
    outcome = streams_lab(tmp_path).save_one(tmp_path / "state")
    assert outcome.snapshot is not None
    description = outcome.snapshot.description
    assert description.applied_offset == 70
    assert description.databases == ("windows/windows.0", "windows/windows.86400000")


def test_an_offset_that_nobody_noted_is_refused_and_never_zero(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    (state / SIDE_FILE).unlink()
    lab = SnapshotLab(tmp_path)
    outcome = lab.save_one(state)
    assert outcome.status == "failed"
    assert isinstance(outcome.error, UnknownOffsetError)
    assert lab.contents() == []


def test_a_store_that_is_open_is_taken_as_running(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "LOCK": b""}, 1)
    with holding_locks([state / "LOCK"]):
        outcome = SnapshotLab(tmp_path).save_one(state)
    assert outcome.snapshot is not None
    assert outcome.snapshot.description.source == "running"


class Switching(PlainLayout):
    """Says whether the application runs as it is told; when nothing is left, that it does not."""

    def __init__(self, answers: Sequence[bool]) -> None:
        super().__init__(PlainOptions(application="orders", store="counts", backend="folder"))
        self.answers = list(answers)

    def in_use(self, location: StoreLocation) -> bool:
        assert location.store.store == "counts"
        return self.answers.pop(0) if self.answers else False


@pytest.mark.parametrize(
    ("answers", "attempts", "source"),
    [
        ([False, False], 1, "closed"),
        ([False, True, True], 2, "running"),
        ([True, False], 1, "running"),
    ],
)
def test_an_application_that_starts_meanwhile_makes_it_begin_again(
    tmp_path: Path, answers: list[bool], attempts: int, source: str
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    outcome = SnapshotLab(tmp_path, layout=Switching(answers)).save_one(state)
    assert outcome.snapshot is not None
    assert (outcome.attempts, outcome.snapshot.description.source) == (attempts, source)


class Meanwhile(LocalStorage):
    """Does something at the first put of a key below ``prefix``."""

    def __init__(self, url: str, prefix: str, does: Callable[[ObjectStorage], None]) -> None:
        super().__init__(url)
        self._prefix = prefix
        self._does: list[Callable[[ObjectStorage], None]] = [does]

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        super().put(key, body, if_absent=if_absent)
        if key.startswith(self._prefix) and self._does:
            self._does.pop()(LocalStorage(self.url))


def meanwhile(folder: Path, does: Callable[[ObjectStorage], None]) -> Meanwhile:
    return Meanwhile((folder / "repository").as_uri(), keys.MANIFESTS, does)


def test_a_blob_that_was_swept_before_the_commit_is_sent_again_g41(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "b.sst": pattern("B")}, 1)
    SnapshotLab(tmp_path)

    def sweep(storage: ObjectStorage) -> None:
        storage.delete([stat.key for stat in storage.list(keys.BLOBS)])

    lab = SnapshotLab(tmp_path, storage=meanwhile(tmp_path, sweep))
    outcome = lab.save_one(state)
    assert (outcome.status, outcome.attempts) == ("stored", 2)
    (content,) = lab.contents()
    assert content["a.sst"] == pattern("A")


def test_a_blob_that_the_newest_snapshot_names_and_somebody_deleted_is_sent_again(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "b.sst": pattern("B")}, 1)
    lab = SnapshotLab(tmp_path)
    lab.save(state)
    storage = lab.repository.storage
    storage.delete([stat.key for stat in storage.list(keys.BLOBS)])
    outcome = lab.save_one(state)
    assert (outcome.status, outcome.new_files) == ("stored", 2)
    assert [content["a.sst"] for content in lab.contents()] == [pattern("A")] * 2


def test_a_blob_is_not_trusted_to_a_snapshot_that_was_deleted_meanwhile_g42(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "b.sst": pattern("B")}, 1)
    SnapshotLab(tmp_path).save(state)
    write_store(state, {"c.sst": pattern("C")}, 2)

    def delete_and_sweep(storage: ObjectStorage) -> None:
        storage.delete([stat.key for stat in storage.list(keys.CATALOG)])
        storage.delete([stat.key for stat in storage.list(keys.BLOBS)])

    lab = SnapshotLab(tmp_path, storage=meanwhile(tmp_path, delete_and_sweep))
    assert lab.save_one(state).attempts == 2
    (content,) = lab.contents()
    assert content["a.sst"] == pattern("A")


def test_what_was_condemned_before_the_run_is_stored_under_another_name(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    lab = SnapshotLab(tmp_path)
    lab.save(state)
    (blob,) = lab.blobs()
    lab.repository.storage.put(keys.condemned(blob.rpartition("/")[2]), b"")
    lab.save(state, run="run2")
    lab.repository.storage.delete([blob])
    (kept,) = lab.blobs()
    assert kept == f"{blob}.run2"
    assert lab.content_of(lab.repository.catalog.list_all().snapshots[0].id)


def test_a_run_longer_than_the_repository_allows_publishes_nothing(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    SnapshotLab(tmp_path)

    def sleep_a_day(_: ObjectStorage) -> None:
        lab.ahead += timedelta(hours=25)

    lab = SnapshotLab(tmp_path, storage=meanwhile(tmp_path, sleep_a_day))
    outcome = lab.save_one(state)
    assert isinstance(outcome.error, RefusedError)
    assert lab.contents() == []
    assert lab.save_one(state).status == "stored"


class Shrinking(PlainLayout):
    """Cuts a file short after it was captured, ``times`` times."""

    def __init__(self, path: Path, content: bytes, times: int) -> None:
        super().__init__(PlainOptions(application="orders", store="counts", backend="folder"))
        self._path, self._content, self._left = path, content, times

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        self._path.write_bytes(self._content)
        return super().noted_offsets(location)

    def positions(
        self, location: StoreLocation, noted: bytes | None, view: StoreView, *, running: bool
    ) -> tuple[ChangelogPosition, ...]:
        if self._left:
            self._left -= 1
            os.truncate(self._path, MIB)
        return super().positions(location, noted, view, running=running)


@pytest.mark.parametrize(("times", "status"), [(2, "stored"), (100, "failed")])
def test_a_file_that_is_cut_while_it_is_read_is_tried_again_a_few_times_g31(
    tmp_path: Path, times: int, status: str
) -> None:
    content = pattern("A", 3 * MIB)
    state = write_store(tmp_path / "counts", {"a.sst": content}, 1)
    lab = SnapshotLab(tmp_path, layout=Shrinking(state / "a.sst", content, times))
    outcome = lab.save_one(state, SnapshotOptions(attempts=3))
    assert outcome.status == status
    if status == "stored":
        assert lab.contents()[0]["a.sst"] == content
    else:
        assert (outcome.attempts, type(outcome.error)) == (3, StoreChangedError)
        assert lab.contents() == []


def faulty(folder: Path, *plan: Fault) -> FaultyStorage:
    return FaultyStorage(LocalStorage((folder / "repository").as_uri()), plan)


def test_a_listing_that_failed_is_a_failure_and_not_a_first_snapshot_g49(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    SnapshotLab(tmp_path).save(state)
    storage = faulty(tmp_path, Fault("list", Instead(slow_down()), key=keys.CATALOG))
    lab = SnapshotLab(tmp_path, storage=storage)
    outcome = lab.save_one(state)
    assert isinstance(outcome.error, StorageError)
    assert "SlowDown" in str(outcome.error)
    assert len(lab.contents()) == 1


def test_a_damaged_newest_snapshot_is_told_of_and_nothing_is_reused_from_it_g49(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    lab = SnapshotLab(tmp_path)
    outcome = lab.save_one(state)
    assert outcome.snapshot is not None
    lab.repository.storage.delete([keys.manifest(outcome.snapshot.id), *lab.blobs()])
    again = lab.save_one(state)
    assert again.snapshot is not None
    assert (again.status, again.new_files) == ("stored", 1)
    assert lab.content_of(again.snapshot.id)["a.sst"] == pattern("A")
    assert len(lab.notes) == 1
    assert "missing" in lab.notes[0]


@pytest.mark.parametrize("method", ["put_file", "put"])
@pytest.mark.parametrize("call", [1, 2])
def test_a_storage_that_fails_in_the_middle_leaves_nothing_listed_g53(
    tmp_path: Path, method: str, call: int
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "b.sst": pattern("B")}, 1)
    SnapshotLab(tmp_path)
    plan = Fault(method, Instead(timed_out()), call=call)  # type: ignore[arg-type]
    lab = SnapshotLab(tmp_path, storage=faulty(tmp_path, plan))
    assert lab.save_one(state).status == "failed"
    assert lab.contents() == []
    assert lab.save_one(state).status == "stored"
    assert len(lab.contents()) == 1
    assert len(lab.blobs()) == 2


def test_a_commit_whose_answer_was_lost_is_a_snapshot(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A")}, 1)
    SnapshotLab(tmp_path)
    plan = Fault("put", Afterwards(timed_out()), key=keys.CATALOG)
    lab = SnapshotLab(tmp_path, storage=faulty(tmp_path, plan))
    assert lab.save_one(state).status == "stored"
    assert len(lab.contents()) == 1


def test_each_file_is_let_go_of_once_it_is_stored_and_those_in_the_manifest_too(
    tmp_path: Path,
) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "b.sst": pattern("B")}, 1)
    lab = SnapshotLab(tmp_path)
    lab.save(state)
    (capture,) = lab.backend.captures
    assert sorted(capture.released) == [SIDE_FILE, "a.sst", "b.sst"]


def test_what_is_told_adds_up_to_the_size_of_the_store(tmp_path: Path) -> None:
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A", 5 * MIB)}, 1)
    lab = SnapshotLab(tmp_path)
    for _ in range(2):
        lab.events.clear()
        lab.save(state)
        (started,) = (event for event in lab.events if isinstance(event, StoreStarted))
        told = sum(event.amount for event in lab.events if isinstance(event, Advanced))
        assert started.total == told == 5 * MIB + (state / SIDE_FILE).stat().st_size
        assert isinstance(lab.events[-1], StoreFinished)
        assert lab.events[-1].ok


def test_an_interrupt_stops_within_seconds_and_lists_nothing_g48(tmp_path: Path) -> None:
    state = write_store(
        tmp_path / "counts", {f"{number}.sst": pattern(str(number), MIB) for number in range(8)}, 1
    )
    lab = SnapshotLab(tmp_path)
    interrupted = threading.Event()
    heard = lab.events.append
    began = 0.0

    def listener(event: Event) -> None:
        nonlocal began
        heard(event)
        if isinstance(event, Advanced) and not interrupted.is_set():
            interrupted.set()
            began = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

    lab.heard = listener  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        lab.save(state, SnapshotOptions(limit_rate_bytes_per_s=MIB // 8))
    # At that rate the rest would take a minute.
    assert time.monotonic() - began < 30
    assert not [one for one in threading.enumerate() if one.name.startswith(("transfer", "store"))]
    assert lab.contents() == []
    assert lab.save_one(state).status == "stored"
    assert len(lab.contents()) == 1


def test_the_rate_limit_holds_over_all_files_together(tmp_path: Path) -> None:
    files = {f"{number}.sst": pattern(str(number), MIB // 4) for number in range(4)}
    state = write_store(tmp_path / "counts", files, 1)
    began = time.monotonic()
    SnapshotLab(tmp_path).save(state, SnapshotOptions(limit_rate_bytes_per_s=2 * MIB))
    assert time.monotonic() - began >= 0.45


def test_many_stores_of_one_content_are_sent_once(tmp_path: Path) -> None:
    state = tmp_path / "state"
    content = Pairs(pairs=some_pairs(2000), applied_offset=5)
    folder = make_key_value(state, "0_0", "counts", content)
    for number in range(1, 6):
        target = state / "orders" / f"0_{number}" / "rocksdb" / "counts"
        target.mkdir(parents=True)
        for file in folder.glob("*.sst"):
            (target / file.name).write_bytes(file.read_bytes())
    lab = SnapshotLab(tmp_path, layout=EachFolder())
    report = lab.save(state, SnapshotOptions(parallel_stores=4))
    assert len(report.outcomes) == 6
    assert not report.failed
    assert sum(outcome.new_files for outcome in report.outcomes) == len(lab.blobs())
    assert len(lab.contents()) == 6


class EachFolder(PlainLayout):
    """Every task of a state directory as a folder store without a changelog."""

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        assert application is None
        found: list[StoreLocation] = []
        for task in sorted((state_dir / "orders").iterdir()):
            options = PlainOptions(application="orders", task=task.name, backend="folder")
            found.extend(PlainLayout(options).discover(task / "rocksdb" / "counts").locations)
        return Discovery(locations=tuple(found))

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        assert location.backend == "folder"
        return b'{"format": 1, "positions": []}'


def test_a_repository_that_is_not_checked_by_its_storage_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    state = write_store(tmp_path / "counts", {"a.sst": pattern("A"), "e": b""}, 1)
    with moto_server() as url:
        make_bucket(url, "states")
        inner = S3Storage("s3://states/p", S3Storage.Options(endpoint_url=url, region="us-east-1"))
        Repository.create(inner, created_at=NOON, accept_unverified_uploads=True)
        storage = FaultyStorage(inner)
        lab = SnapshotLab(tmp_path)
        lab.repository = lab.working = Repository.open(storage)
        assert lab.save_one(state).status == "stored"
        read = {call.key for call in storage.calls if call.method in ("get", "read")}
        assert {key.partition("/")[0] for key in read} >= {"blobs", "manifests", "catalog"}
        assert lab.contents()[0]["a.sst"] == pattern("A")
        inner.close()

"""Stores are found by reading only: all of them, and nothing else."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import (
    CaptureError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
)
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.kafka_streams.generation import generation_of, has_offsets_family
from snapstore.model.store import StoreLocation
from tests.support.fixtures import FIXTURES, FixtureName, expected, unpack
from tests.support.state_dirs import make_database, offsets_family, write_checkpoint


@pytest.fixture
def layout() -> KafkaStreamsLayout:
    return KafkaStreamsLayout()


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def store(task_dir: Path, name: str) -> Path:
    """Leave what looks like a key-value store from outside."""
    return touch(task_dir / "rocksdb" / name / "CURRENT").parent


def segment(task_dir: Path, name: str, start: int) -> Path:
    return touch(task_dir / name / f"{name}.{start}" / "CURRENT").parent


def named(locations: tuple[StoreLocation, ...]) -> list[str]:
    return [str(one.store) for one in locations]


@pytest.mark.parametrize("name", FIXTURES)
def test_a_real_state_directory_gives_each_of_its_stores_once(
    layout: KafkaStreamsLayout, tmp_path: Path, name: FixtureName
) -> None:
    unpack(name, tmp_path)
    discovery = layout.discover(tmp_path)
    roots = set()
    for path in expected(name).rocksdb:
        task, folder, inner = path.split("/")
        roots.add((task, f"rocksdb/{inner}" if folder == "rocksdb" else folder))
    assert {(one.store.task, one.root) for one in discovery.locations} == roots
    assert len(discovery.locations) == len(roots)
    assert discovery.notes == ()
    generation = "kafka-streams-4.0" if name == "ks400-eos" else "kafka-streams-4.3"
    assert {one.generation for one in discovery.locations} == {generation}
    kinds = {
        (one.store.store in ("window", "session"), one.store_type) for one in discovery.locations
    }
    assert (True, "segmented") in kinds
    assert (True, "key-value") not in kinds


def test_the_application_directory_itself_is_as_good_as_the_state_dir(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    application = unpack("ks440-alos", tmp_path)
    assert layout.discover(application) == layout.discover(tmp_path)
    assert layout.discover(application, "ks440-alos") == layout.discover(tmp_path, "ks440-alos")


def test_only_the_application_that_was_asked_for_is_found(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "orders" / "0_0", "counts")
    store(tmp_path / "payments" / "0_0", "sums")
    assert named(layout.discover(tmp_path, "payments").locations) == ["payments/0_0/sums"]
    assert len(layout.discover(tmp_path).locations) == 2


@pytest.mark.parametrize("application", ["refunds", "..", "", "orders/0_0"])
def test_an_application_that_is_not_there_is_not_an_empty_one(
    layout: KafkaStreamsLayout, tmp_path: Path, application: str
) -> None:
    store(tmp_path / "orders" / "0_0", "counts")
    with pytest.raises(StoreNotFoundError):
        layout.discover(tmp_path, application)
    with pytest.raises(StoreNotFoundError):
        layout.discover(tmp_path / "orders", application)


def test_g14_tasks_come_in_natural_order(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    for task in ("0_2", "0_10", "0_1", "10_0", "1_0"):
        store(tmp_path / "orders" / task, "counts")
    found = layout.discover(tmp_path).locations
    assert [one.store.task for one in found] == ["0_1", "0_2", "0_10", "1_0", "10_0"]


def test_g15_lost_and_found_is_skipped_without_reading_it(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "orders", tmp_path / "orders" / "0_0"):
        store(place / "lost+found" / "0_0", "ghost")
    store(tmp_path / "orders" / "0_0", "counts")
    discovery = layout.discover(tmp_path)
    assert named(discovery.locations) == ["orders/0_0/counts"]
    assert discovery.notes == ()


def test_g16_files_of_the_host_and_staging_are_no_stores(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "orders" / "0_0", "counts")
    touch(tmp_path / "orders" / ".lock")
    touch(tmp_path / "orders" / "kafka-streams-process-metadata")
    touch(tmp_path / "orders" / "0_0" / ".lock")
    store(tmp_path / "orders" / ".snapstore" / "0_0", "half")
    found = layout.discover(tmp_path).locations
    assert named(found) == ["orders/0_0/counts"]
    assert found[0].side_files == ()


def test_g17_many_segments_are_one_store(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    task = tmp_path / "orders" / "0_0"
    name = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
    for start in (1609459200000, 1609545600000, 1609632000000):
        segment(task, name, start)
    (found,) = layout.discover(tmp_path).locations
    assert (found.store.store, found.root, found.store_type) == (name, name, "segmented")


def test_g18_an_empty_folder_is_no_state(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    (tmp_path / "orders" / "0_0" / "rocksdb").mkdir(parents=True)
    discovery = layout.discover(tmp_path)
    assert discovery.locations == ()
    assert discovery.notes == (f"no store has files below {tmp_path}",)


def test_empty_folders_of_stores_are_named(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    task = tmp_path / "orders" / "0_0"
    (task / "rocksdb" / "counts").mkdir(parents=True)
    (task / "window").mkdir()
    notes = layout.discover(tmp_path).notes
    assert any(str(task / "rocksdb" / "counts") in note for note in notes)
    assert any(str(task / "window") in note for note in notes)


def test_g21_linked_roots_and_linked_stores_are_followed(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "fast" / "0_0", "counts")
    task = tmp_path / "data" / "orders" / "0_0"
    (task / "rocksdb").mkdir(parents=True)
    (task / "rocksdb" / "counts").symlink_to(tmp_path / "fast" / "0_0" / "rocksdb" / "counts")
    (tmp_path / "ks").symlink_to(tmp_path / "data")
    (found,) = layout.discover(tmp_path / "ks").locations
    assert found.task_dir == task
    assert (found.path / "CURRENT").exists()


def test_a_store_whose_link_leads_nowhere_is_not_left_out(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    rocksdb = tmp_path / "orders" / "0_0" / "rocksdb"
    rocksdb.mkdir(parents=True)
    (rocksdb / "counts").symlink_to(tmp_path / "gone")
    assert named(layout.discover(tmp_path).locations) == ["orders/0_0/counts"]


def test_g10_a_custom_store_is_known_by_its_own_offset_file(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "1_4"
    touch(task / "my-custom.store" / "segment.bin")
    write_checkpoint(task, "app-my-custom.store-changelog 4 77", name=".checkpoint_my-custom.store")
    (found,) = layout.discover(tmp_path).locations
    assert found.store.store == "my-custom.store"
    assert (found.backend, found.store_type) == ("files", "custom")
    assert found.side_files == (".checkpoint_my-custom.store",)
    assert found.generation == "kafka-streams-4.3"


def test_a_custom_store_to_4_2_is_known_by_its_line(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "1_4"
    touch(task / "lucene" / "segments_1")
    write_checkpoint(task, "app-lucene-changelog 4 77")
    (found,) = layout.discover(tmp_path).locations
    assert (found.store.store, found.backend) == ("lucene", "files")
    assert found.generation == "kafka-streams-4.0"


def test_an_unknown_folder_in_a_task_is_named(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    touch(tmp_path / "app" / "1_4" / "old" / "backup.tar")
    (note, _) = layout.discover(tmp_path).notes
    assert note.startswith(str(tmp_path / "app" / "1_4" / "old"))


def test_g11_position_files_belong_to_their_store(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "0_0"
    store(task, "counts")
    write_checkpoint(task, "orders 0 900", name="counts.position")
    write_checkpoint(task, "app-counts-changelog 0 42")
    (found,) = layout.discover(tmp_path).locations
    assert (found.store.store, found.side_files) == ("counts", ("counts.position",))


def test_named_topologies_and_global_stores_are_found(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "app" / "__billing__" / "0_1", "sums")
    store(tmp_path / "app" / "global", "rates")
    store(tmp_path / "app" / "0_0", "counts")
    assert sorted(named(layout.discover(tmp_path).locations)) == [
        "app/0_0/counts",
        "app/__billing__/0_1/sums",
        "app/global/rates",
    ]


def test_g105_a_store_in_memory_leaves_nothing_and_is_no_error(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "app" / "0_0", "counts")
    write_checkpoint(tmp_path / "app" / "0_0", "app-counts-changelog 0 42")
    (tmp_path / "app" / "0_1").mkdir()
    discovery = layout.discover(tmp_path)
    assert named(discovery.locations) == ["app/0_0/counts"]
    assert discovery.notes == ()


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may read everything: be somebody else for a moment."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    ("closed", "unread"), [("app/0_0", "app/0_0"), ("app", "app"), (".", None)]
)
def test_a_folder_that_may_not_be_read_is_not_empty(
    layout: KafkaStreamsLayout, closed: str, unread: str | None
) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        state_dir = Path(place) / "state"
        store(state_dir / "app" / "0_0", "counts")
        (state_dir / closed).chmod(0)
        try:
            with unprivileged():
                if unread is None:
                    with pytest.raises(CaptureError, match="may not be read"):
                        layout.discover(state_dir, "app")
                    return
                found = layout.discover(state_dir, "app")
            assert found.locations == ()
            assert [str(each.store) for each in found.unread] == [unread]
            assert "may not be read" in found.unread[0].error.message
        finally:
            (state_dir / closed).chmod(0o755)


def test_a_hundred_stores_are_found_at_once(layout: KafkaStreamsLayout, tmp_path: Path) -> None:
    template = make_database(tmp_path / "template", offsets_family({"t-0": 1}))
    for number in range(100):
        target = tmp_path / "state" / "app" / f"0_{number}" / "rocksdb" / "counts"
        target.mkdir(parents=True)
        for file in template.iterdir():
            os.link(file, target / file.name)
    begun = time.thread_time()
    found = layout.discover(tmp_path / "state").locations
    assert time.thread_time() - begun < 1
    assert [one.generation for one in found] == ["kafka-streams-4.3"] * 100


class TestGeneration:
    def test_the_family_is_seen_in_a_real_manifest(self, tmp_path: Path) -> None:
        new = make_database(tmp_path / "new", offsets_family({"t-0": 1}))
        old = make_database(tmp_path / "old", {"default": {b"offsets": b"offsets"}})
        assert has_offsets_family(new)
        assert not has_offsets_family(old)

    def test_a_name_that_only_contains_it_is_another_family(self, tmp_path: Path) -> None:
        other = make_database(tmp_path / "other", {"offsets2": {}, "my-offsets": {}})
        assert not has_offsets_family(other)

    def test_it_is_seen_across_the_blocks_of_a_long_manifest(self, tmp_path: Path) -> None:
        names = {f"family-{number:04d}-{'x' * 200}": {b"k": b"v"} for number in range(130)}
        for spare in range(0, 40, 8):
            padded = {"y" * (100 + spare): {}, **names, "offsets": {b"t-0": b"\0" * 8}}
            database = make_database(tmp_path / f"long-{spare}", padded)
            assert has_offsets_family(database)

    def test_one_segment_with_the_family_decides(self, tmp_path: Path) -> None:
        half = make_database(tmp_path / "half", {"default": {}})
        whole = make_database(tmp_path / "whole", offsets_family({}))
        assert generation_of([half, whole]) == "kafka-streams-4.3"
        assert generation_of([half]) == "kafka-streams-4.0"

    @pytest.mark.parametrize(
        "current", [b"", b"MANIFEST-000099\n", b"../MANIFEST-1\n", b"\xff\n", None]
    )
    def test_a_database_without_a_manifest_counts_as_older(
        self, tmp_path: Path, current: bytes | None
    ) -> None:
        if current is not None:
            (tmp_path / "CURRENT").write_bytes(current)
        assert not has_offsets_family(tmp_path)


def test_h12_a_line_that_is_passed_over_is_told_and_hides_no_other(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "0_0"
    store(task, "counts")
    store(task, "sums")
    write_checkpoint(task, "app-counts-changelog 0 -1", "app-sums-changelog 0 7")
    discovery = layout.discover(tmp_path)
    (note,) = discovery.notes
    assert "line 3: Kafka Streams passes over 'app-counts-changelog 0 -1'" in note
    noted = {one.store.store: layout.noted_offsets(one) for one in discovery.locations}
    assert len(noted) == 2


def test_h12_a_store_whose_line_is_passed_over_has_a_changelog_and_no_offset(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "0_0"
    for name in ("counts", "sums"):
        make_database(task / "rocksdb" / name, {"default": {b"k": b"v"}})
    write_checkpoint(task, "app-counts-changelog 0 -1", "app-sums-changelog 0 7")
    counts, sums = layout.discover(tmp_path).locations
    backend = RocksDBBackend()
    with backend.capture(sums) as capture:
        (position,) = layout.positions(
            sums, layout.noted_offsets(sums), capture.view, running=False
        )
        assert position.applied_offset == 7
    with backend.capture(counts) as capture, pytest.raises(UnknownOffsetError):
        layout.positions(counts, layout.noted_offsets(counts), capture.view, running=False)


@pytest.mark.parametrize("place", ["0_0/rocksdb/sums", "0_0/window"])
def test_h14_a_plain_file_in_the_place_of_a_store_is_not_passed_over(
    layout: KafkaStreamsLayout, tmp_path: Path, place: str
) -> None:
    task = tmp_path / "app" / "0_0"
    store(task, "counts")
    write_checkpoint(task, "app-window-changelog 0 7", "app-counts-changelog 0 7")
    touch(tmp_path / "app" / place)
    found = {one.store.store: one for one in layout.discover(tmp_path).locations}
    broken = found[Path(place).name]
    with (
        pytest.raises(SourceDamagedError, match="is not a folder"),
        RocksDBBackend().capture(broken),
    ):
        pass


@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_h14_what_is_no_folder_in_the_place_of_a_task_is_not_passed_over(
    layout: KafkaStreamsLayout, tmp_path: Path, kind: str
) -> None:
    store(tmp_path / "app" / "0_0", "counts")
    place = tmp_path / "app" / "0_1"
    if kind == "file":
        place.touch()
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(tmp_path / "not mounted")
    discovery = layout.discover(tmp_path)
    assert named(discovery.locations) == ["app/0_0/counts"]
    (unread,) = discovery.unread
    assert unread.store.task == "0_1"
    assert f"{place} is no folder" in unread.error.message


def test_h14_other_plain_files_and_folders_that_are_no_tasks_are_named(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    store(tmp_path / "app" / "0_0", "counts")
    strange = (
        touch(tmp_path / "app" / "0_0" / "notes.txt"),
        store(tmp_path / "app" / "__topo__0_1", "sums").parents[1],
        store(tmp_path / "app" / "__topo__" / "old", "sums").parents[1],
    )
    discovery = layout.discover(tmp_path)
    assert named(discovery.locations) == ["app/0_0/counts"]
    for path in strange:
        assert any(note.startswith(f"{path}: ") for note in discovery.notes), path


def test_h14_an_offset_file_and_a_database_that_differ_are_told(
    layout: KafkaStreamsLayout, tmp_path: Path
) -> None:
    task = tmp_path / "app" / "0_0"
    family = offsets_family({"app-counts-changelog-0": 40}, status=0)
    make_database(task / "rocksdb" / "counts", family)
    write_checkpoint(task, "app-counts-changelog 0 90")
    (location,) = layout.discover(tmp_path).locations
    noted = layout.noted_offsets(location)
    with RocksDBBackend().capture(location) as capture:
        positions = layout.positions(location, noted, capture.view, running=False)
        (remark,) = layout.remarks(location, noted, capture.view, positions)
    assert positions[0].applied_offset == 40
    assert ".checkpoint notes 90 for app-counts-changelog:0" in remark
    assert "the least of its databases is 40" in remark

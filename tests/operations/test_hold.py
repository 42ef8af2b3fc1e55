"""What is held is of the folder whose offset was noted, or it is not used."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from snapstore.backends.files import FilesBackend
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.backends.rocksdb.capture import RocksDBCapture
from snapstore.errors import StoreChangedError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.kafka_streams.checkpoint import parse_checkpoint
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.operations.hold import HeldStore, held_store
from snapstore.operations.snapshot import SnapshotOptions
from tests.support.fixtures import unpack
from tests.support.restless import restless
from tests.support.snapshot_lab import SnapshotLab

Act = Callable[[], None]


class ActedBackend(RocksDBBackend):
    """Lets the application act just before a store is captured."""

    def __init__(self, act: Act) -> None:
        super().__init__()
        self._act = act

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[RocksDBCapture]:
        self._act()
        with super().capture(location) as capture:
            yield capture


@pytest.fixture
def application(tmp_path: Path) -> Path:
    return unpack("ks400-eos", tmp_path)


def located(application: Path, store: str) -> StoreLocation:
    found = KafkaStreamsLayout().discover(application.parent).locations
    (location,) = [one for one in found if (one.store.task, one.store.store) == ("0_0", store)]
    return location


@contextmanager
def held(location: StoreLocation, act: Act = lambda: None) -> Iterator[HeldStore]:
    with held_store(
        location, KafkaStreamsLayout(), ActedBackend(act), lambda: datetime.now(UTC)
    ) as found:
        yield found


def replacing(folder: Path) -> Act:
    def replace() -> None:
        aside = folder.rename(folder.parent.parent / f"{folder.name}-aside")
        shutil.copytree(aside, folder)

    return replace


@pytest.mark.parametrize("name", ["0_0", "0_0/rocksdb/plain"])
def test_files_that_were_replaced_after_their_offset_was_noted_are_not_used(
    application: Path, name: str
) -> None:
    """The task was begun anew: its files may hold less than was noted beside the old ones."""
    location = located(application, "plain")
    with (
        pytest.raises(StoreChangedError, match="0_0/plain went away or was replaced"),
        held(location, replacing(application / name)),
    ):
        pytest.fail("it was held")


def test_of_a_store_that_is_removed_one_segment_after_the_other_no_part_is_used(
    application: Path,
) -> None:
    location = located(application, "window")
    first = location.path / "window.1795910400000"
    shutil.copytree(first, location.path / "window.1795996800000")

    def hold_while_it_is_removed() -> None:
        with held(location, lambda: shutil.rmtree(first)) as found:
            assert len(found.capture.view.databases) == 1
            shutil.rmtree(location.path)

    with pytest.raises(StoreChangedError, match="0_0/window went away"):
        hold_while_it_is_removed()


def test_of_a_folder_of_files_that_is_removed_no_part_is_used(application: Path) -> None:
    """Nothing tells which files belong to it."""
    location = StoreLocation(
        store=StoreId("ks400-eos", "0_0", "index"),
        layout="kafka-streams",
        backend="files",
        store_type="custom",
        generation="kafka-streams-4.0",
        task_dir=application / "0_0",
        root="index",
    )
    location.path.mkdir()
    (location.path / "left").touch()

    def hold_while_it_is_removed() -> None:
        with held_store(location, KafkaStreamsLayout(), FilesBackend(), lambda: datetime.now(UTC)):
            shutil.rmtree(location.path)

    with pytest.raises(StoreChangedError, match="0_0/index went away"):
        hold_while_it_is_removed()


def test_a_database_that_was_held_may_go_meanwhile(application: Path) -> None:
    location = located(application, "plain")
    with held(location) as found:
        shutil.rmtree(application)
        assert found.capture.files


class Swapping(KafkaStreamsLayout):
    """Has no directory of task 0_0 between the first question for its offsets and the second."""

    def __init__(self, task_dir: Path) -> None:
        super().__init__()
        self._task_dir = task_dir
        self._aside = task_dir.with_name("aside")

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        if self._aside.exists():
            self._aside.rename(self._task_dir)
            return super().noted_offsets(location)
        self._task_dir.rename(self._aside)
        return None


def test_a_store_that_was_away_for_a_moment_is_taken_all_the_same(
    application: Path, tmp_path: Path
) -> None:
    layout = Swapping(application / "0_0")
    lab = SnapshotLab(tmp_path, layout=layout, backends={"rocksdb": RocksDBBackend()})
    plan = lab.plan(application.parent)
    plan = msgspec.structs.replace(plan, locations=(located(application, "plain"),))
    (outcome,) = lab.take(plan).outcomes
    assert (outcome.status, outcome.attempts, outcome.error) == ("stored", 2, None)


def test_a_task_that_comes_and_goes_is_taken_whole_or_named(
    application: Path, tmp_path: Path
) -> None:
    """No other error, and nothing in the repository but what its task has noted."""
    path = application / "0_0" / ".checkpoint"
    noted = parse_checkpoint(path.read_bytes(), path)
    lab = SnapshotLab(tmp_path, layout=KafkaStreamsLayout(), backends={"rocksdb": RocksDBBackend()})
    plan = lab.plan(application.parent)
    plan = msgspec.structs.replace(
        plan, locations=tuple(one for one in plan.locations if one.store.task == "0_0")
    )
    with restless(application / "0_0", "remaking"):
        options = SnapshotOptions(attempts=2)
        outcomes = [each for _ in range(3) for each in lab.take(plan, options).outcomes]
    failures = {each.error.code for each in outcomes if each.error is not None}
    assert failures <= {"store_changed", "store_not_found", "unknown_offset"}
    for outcome in outcomes:
        if outcome.snapshot is not None:
            (each,) = outcome.snapshot.description.positions
            assert noted[each.position.changelog] == each.position.applied_offset

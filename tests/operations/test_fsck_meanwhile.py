"""What moves while it is read is neither damaged nor lost: it is read again, or named."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.backends.rocksdb.capture import RocksDBCapture
from snapstore.backends.rocksdb.view import RocksDBView
from snapstore.errors import StoreChangedError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.identity import StoreId
from snapstore.model.report import nobody
from snapstore.model.state_facts import TaskFacts
from snapstore.model.store import StoreLocation
from snapstore.operations.fsck import FsckOptions, FsckPorts, fsck
from snapstore.operations.fsck_read import made_at
from snapstore.operations.fsck_report import FsckReport
from tests.support.fixtures import unpack
from tests.support.restless import restless
from tests.support.state_dirs import holding_locks
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

Act = Callable[[], None]
Meanwhile = Callable[[], AbstractContextManager[None]]


class WatchedLayout(KafkaStreamsLayout):
    """Lets the application act before and after the directory is looked at the n-th time."""

    def __init__(self, before: Mapping[int, Act], after: Mapping[int, Act]) -> None:
        super().__init__()
        self._before = before
        self._after = after
        self._looks = 0

    def read_tasks(self, state_dir: Path, application: str | None) -> tuple[TaskFacts, ...]:
        self._looks += 1
        number = self._looks
        self._before.get(number, _nothing)()
        found = super().read_tasks(state_dir, application)
        self._after.get(number, _nothing)()
        return found


class InterruptedBackend(RocksDBBackend):
    """Lets something happen to the files while task 0_0 is opened, or captured, the n-th time.

    Several tasks are read at once.
    """

    def __init__(self, meanwhile: Mapping[int, Meanwhile]) -> None:
        super().__init__()
        self._meanwhile = meanwhile
        self._opened = 0

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[RocksDBView]:
        with self._interrupted(task_dir), super().open_view(task_dir, root) as view:
            yield view

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[RocksDBCapture]:
        with self._interrupted(location.task_dir), super().capture(location) as capture:
            yield capture

    def _interrupted(self, task_dir: Path) -> AbstractContextManager[None]:
        if task_dir.name != "0_0":
            return nullcontext()
        self._opened += 1
        return self._meanwhile.get(self._opened, nullcontext)()


def _nothing() -> None:
    return None


def look(
    state_dir: Path,
    *,
    layout: KafkaStreamsLayout | None = None,
    backend: RocksDBBackend | None = None,
    options: FsckOptions | None = None,
) -> FsckReport:
    ports = FsckPorts(
        inspector=layout or KafkaStreamsLayout(),
        backends={"rocksdb": backend or RocksDBBackend()},
        clock=lambda: datetime.now(UTC),
        listener=nobody,
    )
    return fsck(state_dir, ports, options or FsckOptions())


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    for task in ("0_0", "0_1"):
        make_key_value(tmp_path, task, "counts", Pairs(pairs=some_pairs(90), applied_offset=99))
    return tmp_path


def counts(state_dir: Path) -> Path:
    return state_dir / APPLICATION / "0_0" / "rocksdb" / "counts"


@contextmanager
def _away(path: Path) -> Iterator[None]:
    aside = path.rename(path.with_name("aside"))
    try:
        yield
    finally:
        aside.rename(path)


@pytest.mark.parametrize("look_number", [1, 2])
def test_a_task_that_is_being_removed_loses_no_rows(tmp_path: Path, look_number: int) -> None:
    """Its stores are gone already, its lines in the offset file are not."""
    task = unpack("ks400-eos", tmp_path) / "0_0"

    def remove_stores() -> None:
        for folder in [path for path in task.iterdir() if path.is_dir()]:
            shutil.rmtree(folder)

    layout = WatchedLayout({look_number: remove_stores}, {look_number: lambda: shutil.rmtree(task)})
    report = look(tmp_path, layout=layout)
    assert report.worst in ("clean", "replays")
    assert "0_0" not in {verdict.store.task for verdict in report.verdicts}
    if look_number == 1:
        assert report.notes == (f"{task} went away while it was read",)


def test_a_task_that_is_named_and_went_away_is_told(state_dir: Path) -> None:
    task = state_dir / APPLICATION / "0_0"
    layout = WatchedLayout({}, {1: lambda: shutil.rmtree(task)})
    with pytest.raises(StoreChangedError, match="0_0 went away while it was read"):
        look(state_dir, layout=layout, options=FsckOptions(tasks=("0_0",)))


def test_a_task_that_appears_meanwhile_is_of_the_application_that_runs(state_dir: Path) -> None:
    application = state_dir / APPLICATION
    lock = application / ".lock"
    lock.touch()

    def get_a_task() -> None:
        shutil.copytree(application / "0_1", application / "0_2")

    with holding_locks([lock]):
        report = look(state_dir, layout=WatchedLayout({2: get_a_task}, {}))
    assert {task.facts.task: task.running for task in report.tasks} == {
        "0_0": True,
        "0_1": True,
        "0_2": True,
    }


@pytest.mark.parametrize("name", [".", "CURRENT", "*.sst"])
def test_files_that_are_away_for_a_moment_are_no_damage(state_dir: Path, name: str) -> None:
    path = counts(state_dir) if name == "." else min(counts(state_dir).glob(name))
    report = look(state_dir, backend=InterruptedBackend({1: lambda: _away(path)}))
    assert [verdict.kind for verdict in report.verdicts] == ["clean", "clean"]


def test_a_store_that_is_begun_anew_meanwhile_is_read_again(state_dir: Path) -> None:
    """While its folder is empty nothing is noted there, and that means nothing."""
    store = counts(state_dir)
    lock = state_dir / APPLICATION / ".lock"
    lock.touch()

    @contextmanager
    def emptied() -> Iterator[None]:
        aside = store.rename(state_dir / "aside")
        store.mkdir()
        try:
            yield
        finally:
            store.rmdir()
            aside.rename(store)

    with holding_locks([lock]):
        report = look(state_dir, backend=InterruptedBackend({1: emptied, 2: emptied}))
    assert [verdict.kind for verdict in report.verdicts] == ["clean", "clean"]


def test_a_store_that_is_never_still_is_named_and_stops_no_other(state_dir: Path) -> None:
    store = counts(state_dir)
    table = min(store.glob("*.sst"))

    def touched() -> AbstractContextManager[None]:
        table.touch()
        return nullcontext()

    report = look(state_dir, backend=InterruptedBackend(dict.fromkeys(range(99), touched)))
    told = {verdict.store.task: verdict for verdict in report.verdicts}
    assert (told["0_0"].kind, told["0_0"].cause) == ("unknown", "unreadable")
    assert "orders/0_0/counts changed or went away while it was read" in told["0_0"].reason
    assert told["0_1"].kind == "clean"


def test_a_task_that_is_opened_and_closed_all_the_time_is_named(state_dir: Path) -> None:
    checkpoint = state_dir / APPLICATION / "0_0" / ".checkpoint"

    def come_or_go() -> None:
        if checkpoint.exists():
            checkpoint.unlink()
        else:
            checkpoint.write_text("0\n0\n")

    layout = WatchedLayout(dict.fromkeys(range(99), come_or_go), {})
    told = {str(verdict.store): verdict for verdict in look(state_dir, layout=layout).verdicts}
    assert "0_0 kept changing while it was read" in told["orders/0_0"].reason
    assert told["orders/0_1/counts"].kind == "clean"


def test_the_age_of_a_store_is_told_while_its_files_come_and_go(state_dir: Path) -> None:
    folder = state_dir / APPLICATION / "0_0"
    location = StoreLocation(
        store=StoreId(APPLICATION, "0_0", "counts"),
        layout="kafka-streams",
        backend="rocksdb",
        store_type="key-value",
        generation="kafka-streams-4.3",
        task_dir=folder,
        root="rocksdb",
    )
    with restless(folder / "rocksdb" / "counts", "remaking"):
        ages = [made_at(location) for _ in range(2000)]
    assert any(ages)

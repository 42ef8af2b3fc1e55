"""The plug-in keeps the promises that snapstore's own backends and layouts keep."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import history_writer
import pytest
from snapstore_sqlite.backend import SQLiteBackend
from snapstore_sqlite.layout import GENERATION, SQLiteLayout
from snapstore_sqlite.store import DATABASE, ENTRIES, LOCK, OFFSETS, Application

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import Layout, StoreBackend, StoreView
from snapstore.testing.backend_contract import BackendContract, StoreMaker
from snapstore.testing.layout_contract import LayoutContract, Positions, StateMaker

RUN = "import sys, time; from pathlib import Path; from snapstore_sqlite.store import Application"


class LiveStore:
    """An application at work in a process of its own."""

    def __init__(self, location: StoreLocation, progress: Path) -> None:
        self.location = location
        self._progress = progress
        self._process = subprocess.Popen(
            [sys.executable, history_writer.__file__, location.path, progress]
        )

    def begun(self) -> int:
        return int.from_bytes(self._progress.read_bytes(), "big")

    def wait_begun(self, number: int) -> None:
        deadline = time.monotonic() + 120
        while not (self._progress.exists() and self.begun() >= number):
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def crash(self) -> None:
        self._process.kill()
        self._process.wait()


class SQLiteMaker:
    """Makes the stores that the contract captures."""

    exact = True

    def __init__(self, progress: Path) -> None:
        self._progress = progress

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        location = StoreLocation(
            store=StoreId("shop", "0", "counts"),
            layout="sqlite",
            backend="sqlite",
            store_type="key-value",
            generation=GENERATION,
            task_dir=task_dir,
            root="counts",
        )
        self.extend(location, applied)
        return location

    def extend(self, location: StoreLocation, applied: int) -> None:
        with history_writer.opened(location.path) as store:
            history_writer.go_on(store, applied)

    @contextmanager
    def writing(self, task_dir: Path) -> Iterator[LiveStore]:
        live = LiveStore(self.make(task_dir, 0), self._progress)
        try:
            live.wait_begun(2000)
            yield live
        finally:
            live.crash()

    def applied(self, view: StoreView) -> int | None:
        noted = view.entries("counts", OFFSETS).get(history_writer.CHANGELOG.encode())
        return None if noted is None else int(noted)

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        return dict(view.entries("counts", ENTRIES))


class TestBackend(BackendContract):
    checksummed = False

    @pytest.fixture
    def backend(self) -> StoreBackend:
        return SQLiteBackend(SQLiteBackend.Options(range_bytes=4096))

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return SQLiteMaker(tmp_path / "begun")


class ApplicationMaker:
    """State that an application has left, and one that runs."""

    def __init__(self) -> None:
        self.backend: StoreBackend = SQLiteBackend()

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        made: dict[StoreId, Positions] = {}
        with Application(state_dir, "shop") as application:
            for partition, store in ((0, "counts"), (2, "counts"), (10, "totals")):
                topic = f"shop-{store}-changelog"
                application.store(partition, store).apply({b"k": b"v"}, f"{topic}:{partition}", 41)
                position = ChangelogPosition(ChangelogPartition(topic, partition), 41)
                made[StoreId("shop", str(partition), store)] = (position,)
        return made

    @contextmanager
    def running(self, state_dir: Path) -> Iterator[None]:
        code = f"{RUN}\nwith Application(Path(sys.argv[1]), 'shop'):\n print(flush=True); input()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, state_dir],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            try:
                assert process.stdout.readline() == b"\n", "somebody else holds the lock"
                yield
            finally:
                process.kill()


class TestLayout(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return SQLiteLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return ApplicationMaker()


def test_a_database_that_is_open_counts_as_in_use_without_the_lock(tmp_path: Path) -> None:
    maker = SQLiteMaker(tmp_path / "begun")
    task_dir = tmp_path / "state" / "shop" / "0"
    layout = SQLiteLayout()
    with maker.writing(task_dir) as live:
        assert not (task_dir.parent / LOCK).exists()
        assert layout.in_use(live.location)
    assert not layout.in_use(live.location)
    assert (live.location.path / DATABASE).exists()

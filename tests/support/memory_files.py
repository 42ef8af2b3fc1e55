"""Memory stores that are saved to their folders: at once, or by a process that goes on and on.

python -m tests.support.memory_files WORK_DIR PROGRESS
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.backends.memory.view import MemoryView
from snapstore.memory import MemoryStore
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView
from snapstore.testing.backend_contract import operation
from tests.support.live_writer import LiveWriter

STORE = StoreId("orders", "0", "counts")
CHANGELOG = ChangelogPartition("orders-counts", 0)
_BATCH = 40


class MemoryMaker:
    """Implements StoreMaker of the backend contract."""

    exact = True

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        location = locate(task_dir)
        self.extend(location, applied)
        return location

    def extend(self, location: StoreLocation, applied: int) -> None:
        with MemoryStore(STORE, location.path.parent, changelog=CHANGELOG) as store:
            number = store.positions.get(CHANGELOG, -1) + 1
            while number <= applied:
                stop = min(number + 1000, applied + 1)
                number = apply(store, number, stop)
                store.save()

    @contextmanager
    def writing(self, task_dir: Path) -> Iterator[LiveWriter]:
        location = locate(task_dir)
        arguments = [str(location.path.parent)]
        live = LiveWriter(location, "tests.support.memory_files", arguments, self._work_dir)
        try:
            live.wait_begun(2000)
            yield live
        finally:
            live.crash()

    def applied(self, view: StoreView) -> int | None:
        assert isinstance(view, MemoryView)
        return next((each.applied_offset for each in view.positions), None)

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        (database,) = view.databases
        return dict(view.scan(database, "default"))


def locate(task_dir: Path) -> StoreLocation:
    return StoreLocation(
        store=STORE,
        layout="plain",
        backend="memory",
        store_type="key-value",
        generation="plain-1",
        task_dir=task_dir,
        root="memory/files",
    )


def apply(store: MemoryStore, start: int, stop: int) -> int:
    for number in range(start, stop):
        done = operation(number)
        store.apply(ChangelogRecord(number, done.key, done.value, 0))
    return stop


def _write_for_ever(work_dir: Path, progress: Path) -> None:
    number = 0
    with (
        MemoryStore(STORE, work_dir, changelog=CHANGELOG) as store,
        progress.open("wb", buffering=0) as reached,
    ):
        while True:
            os.pwrite(reached.fileno(), (number + _BATCH - 1).to_bytes(8, "big"), 0)
            number = apply(store, number, number + _BATCH)
            store.save()
            time.sleep(0.001)


if __name__ == "__main__":
    _write_for_ever(Path(sys.argv[1]), Path(sys.argv[2]))

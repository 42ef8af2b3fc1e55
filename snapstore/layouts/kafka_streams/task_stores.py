"""The names of all stores of a task, which each of them asks for."""

import time
from pathlib import Path

from snapstore.layouts.kafka_streams.names import ROCKSDB
from snapstore.layouts.kafka_streams.tasks import read_task
from snapstore.model.store import StoreLocation

_YOUNG_NS = 2 * 10**9
"""A folder may change again within one tick of its time stamp; no tick is that long."""

_Times = tuple[tuple[int, int, int, int], ...]


class TaskStores:
    """Reads a task once, as long as its folders stay the same; safe for several threads."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Times, tuple[str, ...]]] = {}

    def of(self, location: StoreLocation) -> tuple[str, ...]:
        """Return the names of the stores that lie in the task directory of one of them.

        Raises CaptureError when it cannot be read.
        """
        task_dir = location.task_dir
        times = _times(task_dir)
        known = self._known.get(task_dir)
        if times is not None and known is not None and known[0] == times:
            return known[1]
        names = read_task(task_dir, location.store.application, location.store.task).names()
        if times is not None and _times(task_dir) == times:
            self._known[task_dir] = (times, names)
        return names


def _times(task_dir: Path) -> _Times | None:
    """Return what changes with the entries of a task; None where that is too young to tell."""
    found = []
    for path in (task_dir, task_dir / ROCKSDB):
        try:
            state = path.stat()
        except OSError:
            continue
        found.append((state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns))
    if any(time.time_ns() - max(each[2:]) < _YOUNG_NS for each in found):
        return None
    return tuple(found)

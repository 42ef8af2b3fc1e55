"""A million keys, and writers that go on."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.client import Snapstore
from snapstore.memory import MemoryStore
from snapstore.memory.pair_map import PairMap
from tests.memory.conftest import CHANGELOG, STORE, record

KEYS = 1_000_000


def key_at(offset: int) -> bytes:
    return b"%07d" % (offset * 7919 % KEYS)


def value_at(offset: int) -> bytes | None:
    return None if offset >= KEYS and offset % 10 == 3 else b"value-%d" % offset


class Writer(threading.Thread):
    """Goes on with the log until it is told to stop."""

    def __init__(self, store: MemoryStore, offset: int) -> None:
        super().__init__()
        self.offset = offset
        self._store = store
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            self._store.apply(record(self.offset, key_at(self.offset), value_at(self.offset)))
            self.offset += 1

    def await_another_write(self) -> None:
        before = self.offset
        deadline = time.monotonic() + 60
        while self.offset == before:
            assert time.monotonic() < deadline, "a writer is kept waiting"
            time.sleep(0)

    def stop(self) -> int:
        self._stop_asked.set()
        self.join()
        return self.offset


def prefix(last: int) -> dict[bytes, bytes]:
    content: dict[bytes, bytes] = {}
    for offset in range(last + 1):
        value = value_at(offset)
        if value is None:
            content.pop(key_at(offset), None)
        else:
            content[key_at(offset)] = value
    return content


@pytest.mark.slow
def test_a_million_keys_are_copied_as_of_one_moment_while_a_writer_goes_on(
    repository: Snapstore, tmp_path: Path
) -> None:
    points: list[str] = []

    def reached(point: str) -> None:
        points.append(point)
        if len(points) % 20 == 0:
            writer.await_another_write()

    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG, reached=reached) as store:
        for offset in range(KEYS):
            store.apply(record(offset, key_at(offset), value_at(offset)))
        writer = Writer(store, KEYS)
        writer.start()
        try:
            snapshots = [store.snapshot(repository) for _ in range(2)]
        finally:
            end = writer.stop()
    assert points.count("piece written") > 100
    applied = [snapshot.description.applied_offset or 0 for snapshot in snapshots]
    assert KEYS - 1 <= applied[0] < applied[1] < end
    assert snapshots[1].new_bytes < snapshots[0].new_bytes
    for number, snapshot in enumerate(snapshots):
        with MemoryStore.restore(
            repository,
            STORE,
            tmp_path / str(number),
            ref=snapshot.id,
            allow_unchecked_changelog=True,
        ) as restored:
            assert restored.positions == {CHANGELOG: applied[number]}
            assert dict(restored.range()) == prefix(applied[number])


@pytest.mark.slow
def test_a_million_keys_are_frozen_in_a_small_part_of_the_time_of_a_copy() -> None:
    pairs = PairMap((key_at(offset), b"value") for offset in range(KEYS))

    def processor_time(work: Callable[[], object]) -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began

    copied_in = processor_time(lambda: dict(pairs.range(None, None)))
    # The best of several: others may slow the processor down.
    assert min(processor_time(pairs.freeze) for _ in range(10)) < copied_in / 100

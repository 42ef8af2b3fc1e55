"""A million keys, and writers that go on."""

import logging
import threading
import time
from pathlib import Path

import pytest

from snapstore.client import Snapstore
from snapstore.memory import MemoryStore
from tests.memory.conftest import CHANGELOG, STORE, record

KEYS = 1_000_000


def key_at(offset: int) -> bytes:
    return b"%07d" % (offset * 7919 % KEYS)


def value_at(offset: int) -> bytes | None:
    return None if offset >= KEYS and offset % 10 == 3 else b"value-%d" % offset


class Writer(threading.Thread):
    """Goes on with the log until it is told to stop; notes how long each write took."""

    def __init__(self, store: MemoryStore, offset: int) -> None:
        super().__init__()
        self.offset = offset
        self.pauses: list[float] = []
        self._store = store
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            began = time.perf_counter()
            self._store.apply(record(self.offset, key_at(self.offset), value_at(self.offset)))
            self.pauses.append(time.perf_counter() - began)
            self.offset += 1

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
    with MemoryStore(STORE, tmp_path / "work", changelog=CHANGELOG) as store:
        for offset in range(KEYS):
            store.apply(record(offset, key_at(offset), value_at(offset)))
        began = time.perf_counter()
        content = dict(store.range())
        copied_in = time.perf_counter() - began
        del content
        writer = Writer(store, KEYS)
        writer.start()
        snapshots = [store.snapshot(repository) for _ in range(2)]
        end = writer.stop()
    pauses = sorted(writer.pauses)
    logging.getLogger(__name__).info(
        "a copy stops writers for %.3f s; of %d writes during two snapshots the longest took "
        "%.3f s, one in a thousand %.4f s, half of them %.6f s",
        copied_in,
        len(pauses),
        pauses[-1],
        pauses[len(pauses) * 999 // 1000],
        pauses[len(pauses) // 2],
    )
    applied = [snapshot.description.applied_offset or 0 for snapshot in snapshots]
    assert KEYS - 1 <= applied[0] < applied[1] < end
    assert snapshots[1].new_bytes < snapshots[0].new_bytes
    # Any thread may be kept waiting by others for the interpreter; a copy would take far longer.
    assert pauses[-1] < copied_in / 2
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

"""Fetching blobs: large ones come in stretches, and nothing counts before it is hashed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.errors import BlobCorruptError, StorageError
from snapstore.model.store import BytesSource
from snapstore.operations.fetch import BlobToFetch, fetch_all
from snapstore.ports import ObjectStorage
from snapstore.repository import keys
from snapstore.storages.local import LocalStorage
from snapstore.testing.faults import Corrupt, Fault, FaultyStorage
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.support.restore_lab import CountingStorage

MIB = 1 << 20
LARGE = patterned(5 * MIB + 4321)
NAME = sha256_of(LARGE)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(str(tmp_path / "repository"))
    storage.put_file(keys.blob(NAME), BytesSource(LARGE), sha256=NAME)
    return storage


@pytest.fixture
def part(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    return tmp_path / "parts" / NAME


def fetch(
    storage: ObjectStorage, part: Path, *, stretch_bytes: int = MIB, parallel: int = 4
) -> int:
    """Fetch the large blob; returns how many bytes were told of."""
    told, done = list[int](), list[BlobToFetch]()
    fetch_all(
        storage,
        [BlobToFetch(blob=NAME, sha256=NAME, size=len(LARGE), part=part)],
        parallel=parallel,
        limit=None,
        advanced=lambda _, count: told.append(count),
        fetched=done.append,
        stretch_bytes=stretch_bytes,
    )
    assert len(done) == 1
    assert part.read_bytes() == LARGE
    assert [path.name for path in part.parent.iterdir()] == [NAME]
    return sum(told)


@pytest.mark.parametrize("parallel", [1, 4, 16])
def test_a_large_blob_is_fetched_in_stretches(
    storage: LocalStorage, part: Path, parallel: int
) -> None:
    counting = CountingStorage(storage.url)

    assert fetch(counting, part, parallel=parallel) == len(LARGE)

    assert sorted(counting.starts) == [number * MIB for number in range(6)]
    assert counting.read_bytes == len(LARGE)


def test_a_blob_of_two_stretches_is_fetched_in_one(storage: LocalStorage, part: Path) -> None:
    counting = CountingStorage(storage.url)
    fetch(counting, part, stretch_bytes=3 * MIB)
    assert counting.starts == [0]


@pytest.mark.parametrize("call", range(1, 7))
def test_wrong_bytes_in_any_stretch_are_noticed_and_all_of_it_is_fetched_again(
    storage: LocalStorage, part: Path, call: int
) -> None:
    spoilt = FaultyStorage(storage, [Fault("read", Corrupt(position=4000), call=call)])

    assert fetch(spoilt, part) == 2 * len(LARGE)

    assert len(spoilt.calls) == 7


def test_a_blob_with_wrong_bytes_is_refused_and_leaves_nothing(
    storage: LocalStorage, part: Path
) -> None:
    path = storage.root / keys.blob(NAME)
    path.write_bytes(LARGE[:-1] + b"!")

    with pytest.raises(BlobCorruptError):
        fetch(storage, part)

    assert list(part.parent.iterdir()) == []


class LosesAStretch(CountingStorage):
    """Loses the connection early in one stretch, once as many others have come as lie before it."""

    def __init__(self, url: str, stretch: int) -> None:
        super().__init__(url)
        self._stretch = stretch
        self._whole = threading.Semaphore(0)

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        pieces = super().read(key, start=start, stop=stop)
        if start == self._stretch * MIB:
            for _ in range(self._stretch):
                assert self._whole.acquire(timeout=60)
            yield next(pieces)
            raise StorageError("connection lost")
        yield from pieces
        self._whole.release()


@pytest.mark.slow
@pytest.mark.parametrize("stretch", [0, 2, 5])
def test_after_a_stretch_was_cut_only_what_is_missing_is_fetched(
    storage: LocalStorage, part: Path, stretch: int
) -> None:
    with pytest.raises(StorageError, match="connection lost"):
        fetch(LosesAStretch(storage.url, stretch), part, parallel=2)

    rest = CountingStorage(storage.url)
    fetched = fetch(rest, part)

    assert rest.read_bytes == fetched
    if stretch:
        assert fetched <= len(LARGE) - stretch * MIB - 4096
        assert 0 not in rest.starts


def test_a_file_that_was_filled_from_its_beginning_is_gone_on_with(
    storage: LocalStorage, part: Path
) -> None:
    part.write_bytes(LARGE[: 2 * MIB + 77])
    rest = CountingStorage(storage.url)

    assert fetch(rest, part) == len(LARGE) - 2 * MIB - 77

    assert min(rest.starts) == 2 * MIB + 77


def test_a_file_that_is_complete_is_read_and_not_fetched(storage: LocalStorage, part: Path) -> None:
    part.write_bytes(LARGE)
    unread = CountingStorage(storage.url)

    assert fetch(unread, part, parallel=1) == 0

    assert unread.starts == []


class HasOneStretch(LocalStorage):
    """Loses every stretch but the second, and those only once the second has come."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._come = threading.Event()

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        if start == MIB:
            yield from super().read(key, start=start, stop=stop)
            self._come.set()
            return
        assert self._come.wait(60)
        raise StorageError("lost")


def interrupted(storage: LocalStorage, part: Path) -> None:
    """Leave a file of which the second stretch is there and the others are not."""
    with pytest.raises(StorageError, match="lost"):
        fetch(HasOneStretch(storage.url), part, parallel=2)


@pytest.mark.parametrize(
    "harm", ["note of another length", "note is gone", "file was cut", "file is longer"]
)
def test_whatever_became_of_the_note_or_of_the_file_the_bytes_are_right_in_the_end(
    storage: LocalStorage, part: Path, harm: str
) -> None:
    interrupted(storage, part)
    note = part.with_name(f"{NAME}.at")
    match harm:
        case "note of another length":
            note.write_bytes(note.read_bytes() + b"\0" * 8)
        case "note is gone":
            note.unlink()
        case "file was cut":
            os.truncate(part, 100)
        case _:
            os.truncate(part, len(LARGE) + 1)

    fetch(storage, part)


def test_zeros_that_a_power_cut_left_are_not_taken_for_what_was_written(
    storage: LocalStorage, part: Path
) -> None:
    interrupted(storage, part)
    size = part.stat().st_size
    part.write_bytes(bytes(size))

    fetch(storage, part)


_KILLED_FETCH = """
import os, signal, sys
from pathlib import Path
from snapstore.operations.fetch import BlobToFetch, fetch_all
from tests.support.restore_lab import CountingStorage

url, name, size, part, limit = sys.argv[1:]
told = 0

def advanced(_, count):
    global told
    told += count
    if told >= int(limit):
        os.kill(os.getpid(), signal.SIGKILL)

fetch_all(
    CountingStorage(url),
    [BlobToFetch(blob=name, sha256=name, size=int(size), part=Path(part))],
    parallel=3,
    limit=None,
    advanced=advanced,
    fetched=lambda _: None,
    stretch_bytes=1 << 20,
)
"""


@pytest.mark.parametrize("after_bytes", [4096, 2 * MIB, 5 * MIB])
def test_a_fetch_that_was_killed_goes_on_by_byte_position(
    storage: LocalStorage, part: Path, after_bytes: int
) -> None:
    command = [sys.executable, "-c", _KILLED_FETCH, storage.url, NAME, str(len(LARGE)), str(part)]
    ended = subprocess.run([*command, str(after_bytes)], check=False, cwd=os.curdir)
    assert ended.returncode == -signal.SIGKILL

    rest = CountingStorage(storage.url)
    fetched = fetch(rest, part)

    assert len(LARGE) - after_bytes - 4 * 4096 <= fetched <= len(LARGE) - after_bytes + 4096

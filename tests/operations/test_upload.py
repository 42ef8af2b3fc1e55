"""Sending files: what is read, how often, and how fast."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import SourceDamagedError, StoreChangedError
from snapstore.model.store import ByteSource, BytesSource, CapturedFile, FileIdentity
from snapstore.operations.rate_limit import Pace, RateLimit
from snapstore.operations.stopping import Stop, WorkStopped
from snapstore.operations.upload import Known, StoredFile, Uploader
from snapstore.repository import BlobWriter, HashCache, Repository, keys
from snapstore.repository.blobs import read_blob
from snapstore.storages.local import LocalStorage
from snapstore.storages.local.location import UNFINISHED
from snapstore.testing.faults import FaultyStorage
from tests.support.repository import make_repository

MIB = 1 << 20
OLD = FileIdentity(1, 2, 3, 4, 5)


class Watched(BytesSource):
    """Counts its reads, and remembers the longest."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads = 0
        self.longest = 0
        self.given = 0

    def pread(self, length: int, position: int) -> bytes:
        self.reads += 1
        self.longest = max(self.longest, length)
        self.given += max(0, min(length, self.size - position))
        return super().pread(length, position)


class Unreadable(BytesSource):
    """A bad sector."""

    def pread(self, length: int, position: int) -> bytes:
        if position:
            raise OSError(5, "Input/output error", length)
        return super().pread(length, position)


class Failing(Unreadable):
    """Tells when it has failed."""

    def __init__(self, content: bytes, failed: threading.Event) -> None:
        super().__init__(content)
        self._failed = failed

    def pread(self, length: int, position: int) -> bytes:
        if position:
            self._failed.set()
        return super().pread(length, position)


class Hesitant(Watched):
    """Waits until another one has failed, and leaves some time to be stopped before each read."""

    def __init__(self, content: bytes, failed: threading.Event) -> None:
        super().__init__(content)
        self._failed = failed

    def pread(self, length: int, position: int) -> bytes:
        assert self._failed.wait(60)
        time.sleep(0.05)
        return super().pread(length, position)


def captured(source: ByteSource, *, inline: bool = False, name: str = "a.sst") -> CapturedFile:
    return CapturedFile(name=name, mode=0o100640, source=source, identity=OLD, inline=inline)


def send(
    writer: BlobWriter,
    *files: CapturedFile,
    cache: HashCache | None = None,
    known: Known | None = None,
    stop: Stop | None = None,
) -> list[StoredFile]:
    with ThreadPoolExecutor(2) as pool:
        uploader = Uploader(pool, writer, cache=cache, limit=None, clock=lambda: datetime.now(UTC))
        sending = uploader.send(
            files,
            known or Known(),
            trust_cache=True,
            advanced=lambda *_: None,
            stop=stop or Stop(),
        )
        with closing(sending):
            return [stored for _, stored in sending]


def test_a_small_file_is_read_once_and_a_remembered_one_not_at_all(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "r")
    cache = HashCache(tmp_path / "hashes")
    first = Watched(b"x" * MIB)
    (stored,) = send(repository.begin_run("r1"), captured(first), cache=cache)
    assert (first.reads, stored.new, stored.entry.mode) == (1, True, 0o640)
    again = Watched(b"x" * MIB)
    known = Known(blobs={stored.entry.sha256: stored.entry.sha256})
    (reused,) = send(repository.begin_run("r2"), captured(again), cache=cache, known=known)
    assert (again.reads, reused.new, reused.entry) == (0, False, stored.entry)


def test_a_large_file_is_never_held_whole_in_memory(tmp_path: Path) -> None:
    source = Watched(b"x" * (5 * MIB + 1))
    send(make_repository(tmp_path).begin_run("r1"), captured(source))
    assert source.longest <= MIB


def test_a_small_file_travels_inside_the_manifest_and_a_large_one_never(tmp_path: Path) -> None:
    files = [
        captured(BytesSource(b"x" * 65_536), inline=True, name="small"),
        captured(BytesSource(b"x" * 65_537), inline=True, name="large"),
    ]
    stored = send(make_repository(tmp_path).begin_run("r1"), *files)
    inline = {one.entry.name: one.entry.inline is not None for one in stored}
    assert inline == {"small": True, "large": False}


class Restless(Watched):
    """Somebody writes to it while it is read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.now = OLD

    def pread(self, length: int, position: int) -> bytes:
        if position > 2 * MIB:
            self._content = b"y" * self.size
            self.now = msgspec.structs.replace(OLD, mtime_ns=OLD.mtime_ns + 1)
        return super().pread(length, position)

    def identity_now(self) -> FileIdentity:
        return self.now


def blob_names(repository: Repository) -> list[str]:
    return [stat.key.rpartition("/")[2] for stat in repository.storage.list(keys.BLOBS)]


def test_a_folder_takes_a_large_file_in_one_reading_under_the_hash_of_what_it_holds(
    tmp_path: Path,
) -> None:
    repository = make_repository(tmp_path)
    source = Watched(b"x" * (5 * MIB + 1))

    (stored,) = send(repository.begin_run("r1"), captured(source))

    assert source.given == source.size
    assert (stored.new, stored.entry.sha256) == (True, sha256(b"x" * source.size).hexdigest())
    assert blob_names(repository) == [stored.entry.blob]
    held = b"".join(read_blob(repository.storage, stored.entry.sha256, start=0, stop=source.size))
    assert held == b"x" * source.size


@pytest.mark.parametrize("copying", [True, False])
def test_a_file_that_is_written_to_while_it_is_read_is_not_taken_nor_remembered(
    tmp_path: Path, copying: bool
) -> None:
    repository = make_repository(tmp_path / "r")
    if not copying:
        repository = Repository.open(FaultyStorage(repository.storage))
    cache = HashCache(tmp_path / "hashes")

    with pytest.raises(StoreChangedError, match=r"a\.sst"):
        send(repository.begin_run("r1"), captured(Restless(b"x" * (4 * MIB))), cache=cache)

    assert cache.get(OLD, now_ns=time.time_ns()) is None
    for name in blob_names(repository):
        held = b"".join(read_blob(repository.storage, name, start=0, stop=4 * MIB))
        assert sha256(held).hexdigest() == name


def test_a_file_of_the_size_of_a_stored_one_is_hashed_before_anything_is_written(
    tmp_path: Path,
) -> None:
    repository = make_repository(tmp_path)
    (stored,) = send(repository.begin_run("r1"), captured(Watched(b"x" * (2 * MIB))))
    known = Known(
        blobs={stored.entry.sha256: stored.entry.sha256}, sizes=frozenset({stored.entry.size})
    )
    unfinished = repository.storage
    assert isinstance(unfinished, LocalStorage)
    (unfinished.root / UNFINISHED).rmdir()

    (again,) = send(repository.begin_run("r2"), captured(Watched(b"x" * (2 * MIB))), known=known)

    assert (again.new, again.entry) == (False, stored.entry)
    assert not (unfinished.root / UNFINISHED).exists()


def test_equal_files_are_copied_to_one_blob(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    files = [captured(Watched(b"x" * (2 * MIB)), name=str(number)) for number in range(6)]

    stored = send(repository.begin_run("r1"), *files)

    assert sorted(one.new for one in stored) == [False] * 5 + [True]
    assert len({one.entry.blob for one in stored}) == len(blob_names(repository)) == 1
    assert list(repository.storage.unfinished_uploads()) == []


def test_a_copy_whose_plain_name_is_condemned_gets_another(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    name = sha256(b"x" * (2 * MIB)).hexdigest()
    writer = BlobWriter(repository.storage, run="r1", read_back=False, condemned=frozenset({name}))

    (stored,) = send(writer, captured(Watched(b"x" * (2 * MIB))))

    assert (stored.entry.sha256, stored.entry.blob) == (name, f"{name}.r1")
    assert blob_names(repository) == [f"{name}.r1"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = Unreadable(b"x" * (2 * MIB))
    with pytest.raises(SourceDamagedError, match=r"a\.sst cannot be read at byte 262144"):
        send(make_repository(tmp_path).begin_run("r1"), captured(source))


def test_after_an_error_nobody_reads_the_files_any_more(tmp_path: Path) -> None:
    failed = threading.Event()
    readers = [Hesitant(bytes([number]) * (3 * MIB), failed) for number in range(20)]
    files = [captured(reader, name=str(number)) for number, reader in enumerate(readers)]
    with pytest.raises(SourceDamagedError):
        send(
            make_repository(tmp_path).begin_run("r1"),
            captured(Failing(b"x" * (2 * MIB), failed)),
            *files,
        )
    reads = [reader.reads for reader in readers]
    time.sleep(0.2)
    assert [reader.reads for reader in readers] == reads
    assert 0 in reads


def test_an_order_to_stop_ends_it(tmp_path: Path) -> None:
    stop = Stop()
    stop.order()
    with pytest.raises(WorkStopped):
        send(make_repository(tmp_path).begin_run("r1"), captured(BytesSource(b"x")), stop=stop)


def test_one_part_can_be_stopped_alone() -> None:
    whole = Stop()
    one, other = whole.part(), whole.part()
    one.order()
    assert (whole.ordered, one.ordered, other.ordered) == (False, True, False)
    whole.order()
    assert other.ordered
    with pytest.raises(WorkStopped):
        other.sleep(60)


def test_the_rate_is_shared_by_all_threads_and_a_pause_earns_no_credit() -> None:
    now, slept = 0.0, list[float]()
    limit = RateLimit(100, monotonic=lambda: now, sleep=slept.append)
    limit.passed(50)
    limit.passed(50)
    now = 10.0
    limit.passed(100)
    assert slept == [0.5, 1.0, 1.0]


def test_transfers_that_begin_together_keep_to_the_rate_from_the_first_second() -> None:
    rate, pieces, began = 4 << 20, list[tuple[float, int]](), time.monotonic()
    limit = RateLimit(rate)

    def transfer(number: int) -> None:
        pace = Pace(limit, 2 << 20, time.sleep)
        for _ in range(4):
            pieces.append((time.monotonic() - began, 512 << 10))
            pace.passed(512 << 10)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(transfer, range(4)))
    seconds = time.monotonic() - began
    assert seconds >= 8 / 4 * 0.95
    for at, _ in pieces:
        asked_for = sum(size for when, size in pieces if when <= at)
        assert asked_for <= rate * at + rate, f"more than a second's worth ahead after {at} s"


def test_a_stop_wakes_those_who_wait_for_the_rate() -> None:
    stop = Stop()
    limit = RateLimit(1, sleep=stop.sleep)
    threading.Timer(0.1, stop.order).start()
    began = time.monotonic()
    with pytest.raises(WorkStopped):
        limit.passed(3600)
    assert time.monotonic() - began < 60

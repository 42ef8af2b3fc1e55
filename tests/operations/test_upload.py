"""Sending files: what is read, how often, and how fast."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.errors import SourceDamagedError
from snapstore.model.store import ByteSource, BytesSource, CapturedFile, FileIdentity
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.stopping import Stop, WorkStopped
from snapstore.operations.upload import StoredFile, Uploader
from snapstore.repository import BlobWriter, HashCache
from tests.support.repository import make_repository

MIB = 1 << 20
OLD = FileIdentity(1, 2, 3, 4, 5)


class Watched(BytesSource):
    """Counts its reads, and remembers the longest."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.reads = 0
        self.longest = 0

    def pread(self, length: int, position: int) -> bytes:
        self.reads += 1
        self.longest = max(self.longest, length)
        return super().pread(length, position)


class Unreadable(BytesSource):
    """A bad sector."""

    def pread(self, length: int, position: int) -> bytes:
        if position:
            raise OSError(5, "Input/output error", length)
        return super().pread(length, position)


def captured(source: ByteSource, *, inline: bool = False, name: str = "a.sst") -> CapturedFile:
    return CapturedFile(name=name, mode=0o100640, source=source, identity=OLD, inline=inline)


def send(
    writer: BlobWriter,
    *files: CapturedFile,
    cache: HashCache | None = None,
    known: dict[str, str] | None = None,
    stop: Stop | None = None,
) -> list[StoredFile]:
    with ThreadPoolExecutor(2) as pool:
        uploader = Uploader(pool, writer, cache=cache, limit=None, clock=lambda: datetime.now(UTC))
        sending = uploader.send(
            files, known or {}, trust_cache=True, advanced=lambda _: None, stop=stop or Stop()
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
    known = {stored.entry.sha256: stored.entry.sha256}
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


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = Unreadable(b"x" * (2 * MIB))
    with pytest.raises(SourceDamagedError, match=r"a\.sst cannot be read at byte 1048576"):
        send(make_repository(tmp_path).begin_run("r1"), captured(source))


def test_after_an_error_nobody_reads_the_files_any_more(tmp_path: Path) -> None:
    readers = [Watched(bytes([number]) * (3 * MIB)) for number in range(20)]
    files = [captured(reader, name=str(number)) for number, reader in enumerate(readers)]
    with pytest.raises(SourceDamagedError):
        send(
            make_repository(tmp_path).begin_run("r1"),
            captured(Unreadable(b"x" * (2 * MIB))),
            *files,
        )
    reads = [reader.reads for reader in readers]
    time.sleep(0.05)
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


def test_a_stop_wakes_those_who_wait_for_the_rate() -> None:
    stop = Stop()
    limit = RateLimit(1, sleep=stop.sleep)
    threading.Timer(0.1, stop.order).start()
    began = time.monotonic()
    with pytest.raises(WorkStopped):
        limit.passed(3600)
    assert time.monotonic() - began < 5

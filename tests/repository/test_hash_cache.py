"""Hashes that are remembered, and those that must not be."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from snapstore.model.store import FileIdentity
from snapstore.repository import HashCache

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS
A, B = hashlib.sha256(b"a").hexdigest(), hashlib.sha256(b"b").hexdigest()


def old_file(inode: int = 7, mtime_ns: int = NOW_NS - DAY_NS, ctime_ns: int = 0) -> FileIdentity:
    return FileIdentity(2**64 - 1, inode, 4096, mtime_ns, ctime_ns)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "hashes"


def test_a_hash_outlives_the_process(path: Path) -> None:
    cache = HashCache(path)
    cache.add(old_file(), A, now_ns=NOW_NS)
    cache.save()
    assert HashCache(path).get(old_file(), now_ns=NOW_NS) == A


@pytest.mark.parametrize(
    "other",
    [
        FileIdentity(1, 7, 4096, NOW_NS - DAY_NS),
        old_file(inode=8),
        FileIdentity(2**64 - 1, 7, 4097, NOW_NS - DAY_NS),
        old_file(mtime_ns=NOW_NS - DAY_NS + 1),
        old_file(ctime_ns=5),
    ],
)
def test_any_difference_means_reading_again(path: Path, other: FileIdentity) -> None:
    cache = HashCache(path)
    cache.add(old_file(), A, now_ns=NOW_NS)
    assert cache.get(other, now_ns=NOW_NS) is None


@pytest.mark.parametrize("age_ns", [0, 1_999_999_999, -DAY_NS])
def test_a_file_younger_than_two_seconds_is_neither_noted_nor_believed(
    path: Path, age_ns: int
) -> None:
    young = old_file(mtime_ns=NOW_NS - age_ns)
    cache = HashCache(path)
    cache.add(young, A, now_ns=NOW_NS)
    assert cache.get(young, now_ns=NOW_NS + 10**15 + 2 * DAY_NS) is None
    settled = old_file(mtime_ns=NOW_NS - DAY_NS)
    cache.add(settled, A, now_ns=NOW_NS)
    assert cache.get(settled, now_ns=settled.mtime_ns + max(age_ns, 0)) is None


def test_a_modification_time_that_was_set_back_does_not_make_a_file_old(path: Path) -> None:
    touched = old_file(mtime_ns=0, ctime_ns=NOW_NS - 1)
    cache = HashCache(path)
    cache.add(touched, A, now_ns=NOW_NS)
    assert cache.get(touched, now_ns=NOW_NS) is None


def test_two_processes_keep_what_the_other_added(path: Path) -> None:
    first, second = HashCache(path), HashCache(path)
    first.add(old_file(1), A, now_ns=NOW_NS)
    second.add(old_file(2), B, now_ns=NOW_NS)
    first.save()
    second.save()
    both = HashCache(path)
    assert both.get(old_file(1), now_ns=NOW_NS) == A
    assert both.get(old_file(2), now_ns=NOW_NS) == B
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["hashes", "hashes.lock"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign"])
def test_a_damaged_file_is_begun_anew(path: Path, damage: str) -> None:
    cache = HashCache(path)
    cache.add(old_file(), A, now_ns=NOW_NS)
    cache.save()
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[:-1],
            "flipped": content[:-1] + bytes([content[-1] ^ 1]),
            "foreign": b"SQLite format 3\x00" * 100,
        }[damage]
    )
    begun_anew = HashCache(path)
    assert begun_anew.get(old_file(), now_ns=NOW_NS) is None
    begun_anew.add(old_file(), A, now_ns=NOW_NS)
    begun_anew.save()
    assert HashCache(path).get(old_file(), now_ns=NOW_NS) == A


def test_ten_thousand_hashes_are_loaded_in_less_than_50_ms(path: Path) -> None:
    cache = HashCache(path)
    for inode in range(10_000):
        cache.add(old_file(inode), A, now_ns=NOW_NS)
    cache.save()
    code = (
        "import pathlib, sys, time\n"
        "from snapstore.model.store import FileIdentity\n"
        "from snapstore.repository import HashCache\n"
        "def loaded_in():\n"
        "    began = time.process_time()\n"
        "    HashCache(pathlib.Path(sys.argv[1])).get(FileIdentity(1, 1, 1, 0), now_ns=10**19)\n"
        "    return time.process_time() - began\n"
        "print(min(loaded_in() for _ in range(20)))  # others may slow the processor down\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 0.05


def test_a_save_that_is_killed_leaves_the_old_file_g52(path: Path) -> None:
    cache = HashCache(path)
    cache.add(old_file(), A, now_ns=NOW_NS)
    cache.save()
    code = (
        "import os, pathlib, signal, sys\n"
        "from snapstore.model.store import FileIdentity\n"
        "from snapstore.repository import HashCache\n"
        "cache = HashCache(pathlib.Path(sys.argv[1]))\n"
        f"cache.add(FileIdentity(1, 1, 1, 0), {B!r}, now_ns={NOW_NS})\n"
        "pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "cache.save()\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -9
    assert HashCache(path).get(old_file(), now_ns=NOW_NS) == A


def test_what_a_killed_save_left_is_gone_after_the_next(tmp_path: Path) -> None:
    cache = HashCache(tmp_path / "hashes")
    cache.add(old_file(), A, now_ns=NOW_NS)
    cache.save()
    (tmp_path / ".hashes.half").write_bytes(b"half")
    (tmp_path / ".other").write_bytes(b"")
    cache.save()
    assert {path.name for path in tmp_path.iterdir()} == {"hashes", "hashes.lock", ".other"}


def test_a_run_that_asked_for_no_hash_writes_nothing(tmp_path: Path) -> None:
    HashCache(tmp_path / "hashes").save()
    assert not [*tmp_path.iterdir()]

"""Locks of other processes are seen without touching them, and held against them."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from snapstore.errors import CaptureError, StoreInUseError
from snapstore.layouts.locks import held_locks, hold_lock
from tests.support.state_dirs import holding_locks


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / ".lock"
    path.touch()
    return path


def locked_elsewhere(path: Path) -> bool:
    """Ask from a process of the test's own, without snapstore, by trying to take the lock."""
    script = (
        "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True)
    return done.returncode != 0


def test_a_free_file_and_a_missing_one_are_not_held(lock: Path, tmp_path: Path) -> None:
    assert held_locks([lock, tmp_path / "missing", lock / "below"]) == frozenset()


def test_nothing_asked_nothing_held() -> None:
    assert held_locks([]) == frozenset()


def test_a_lock_of_another_process_is_seen_among_many(lock: Path, tmp_path: Path) -> None:
    others = [tmp_path / f"with space\n{number}" for number in range(50)]
    for path in others:
        path.touch()
    with holding_locks([lock]):
        assert held_locks([*others, lock]) == {lock}
    assert held_locks([*others, lock]) == frozenset()


def test_a_lock_of_this_process_is_seen_and_survives_the_question(lock: Path) -> None:
    with lock.open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert held_locks([lock]) == {lock}
        assert locked_elsewhere(lock)


def test_a_lock_of_this_process_survives_a_refused_hold(lock: Path) -> None:
    with lock.open("rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        with pytest.raises(StoreInUseError), hold_lock(lock):
            pass
        assert locked_elsewhere(lock)


def test_a_held_lock_keeps_others_out_until_it_is_left(lock: Path) -> None:
    with hold_lock(lock):
        assert locked_elsewhere(lock)
        with pytest.raises(StoreInUseError), hold_lock(lock):
            pass
        assert locked_elsewhere(lock)
    assert not locked_elsewhere(lock)


def test_a_held_lock_is_not_dropped_by_closing_another_descriptor(lock: Path) -> None:
    with hold_lock(lock):
        lock.open("rb+").close()
        assert locked_elsewhere(lock)


def test_a_missing_file_is_made_and_stays(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with hold_lock(path):
        assert locked_elsewhere(path)
    assert path.read_bytes() == b""


def test_a_lock_is_freed_when_the_block_fails(lock: Path) -> None:
    with pytest.raises(KeyError), hold_lock(lock):
        raise KeyError
    assert not locked_elsewhere(lock)


def test_a_file_that_cannot_be_opened_is_not_taken_for_free(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(CaptureError, match="loop"):
        held_locks([loop])


def test_asking_leaves_no_descriptor_open(lock: Path) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    held_locks([lock])
    with hold_lock(lock):
        pass
    assert len(sorted(Path("/proc/self/fd").iterdir())) == len(before)

"""Locks of other processes are seen without touching them, and held against them."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from snapstore.errors import CaptureError, StoreInUseError
from snapstore.layouts.locks import held_locks, hold_lock
from snapstore.testing.backend_history import open_files
from tests.support.state_dirs import holding_locks


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / ".lock"
    path.touch()
    return path


@pytest.fixture(params=["as it is", "several threads"], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where another thread is, a program asks; alone, as a test run mostly is, a fork."""
    if request.param == "as it is":
        yield
        return
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    yield
    done.set()
    other.join()


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
        with pytest.raises(StoreInUseError), hold_lock(lock, lock.parent):
            pass
        assert locked_elsewhere(lock)


def test_a_held_lock_keeps_others_out_until_it_is_left(lock: Path) -> None:
    with hold_lock(lock, lock.parent):
        assert locked_elsewhere(lock)
        with pytest.raises(StoreInUseError), hold_lock(lock, lock.parent):
            pass
        assert locked_elsewhere(lock)
    assert not locked_elsewhere(lock)


def test_a_held_lock_is_not_dropped_by_closing_another_descriptor(lock: Path) -> None:
    with hold_lock(lock, lock.parent):
        lock.open("rb+").close()
        assert locked_elsewhere(lock)


def test_a_missing_file_is_made_and_stays(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with hold_lock(path, path.parent):
        assert locked_elsewhere(path)
    assert path.read_bytes() == b""


def test_a_lock_is_freed_when_the_block_fails(lock: Path) -> None:
    with pytest.raises(KeyError), hold_lock(lock, lock.parent):
        raise KeyError
    assert not locked_elsewhere(lock)


def test_a_file_that_cannot_be_opened_is_not_taken_for_free(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(CaptureError, match="loop"):
        held_locks([loop])


def test_asking_leaves_no_descriptor_open(lock: Path) -> None:
    before = open_files()
    held_locks([lock])
    with hold_lock(lock, lock.parent):
        pass
    assert open_files() == before


def test_a_program_that_ignores_the_end_of_its_children_is_told_all_the_same(lock: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with holding_locks([lock]):
            assert held_locks([lock]) == {lock}
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_asking_leaves_no_child_behind(lock: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        before = _children()
        held_locks([lock])
        after = _children()
        other.kill()
    assert str(other.pid) in before
    assert after == before


def _children() -> set[str]:
    """Those of this process, whatever they are and whether they have ended or not."""
    found: set[str] = set()
    for each in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found.update((each / "children").read_text().split())
    return found


def test_a_lock_in_the_place_of_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CaptureError, match="not a regular file"):
        held_locks([tmp_path / "pipe"])


_ALONE = """
import fcntl, sys
from pathlib import Path
from snapstore.layouts.locks import held_locks
lock = Path(sys.argv[1])
with lock.open("rb+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    assert held_locks([lock, lock.with_name("free")]) == {lock}
    assert "subprocess" not in sys.modules, "a program was started"
    print("asked", flush=True)
    sys.stdin.read()
"""


def test_a_program_of_one_thread_keeps_its_lock_and_starts_no_other_program(lock: Path) -> None:
    lock.with_name("free").touch()
    with subprocess.Popen(
        [sys.executable, "-c", _ALONE, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == b"asked\n"
        assert locked_elsewhere(lock)
        program.stdin.close()
    assert program.returncode == 0

"""A child that answers many questions: in step, alone with its pipes, and gone in the end.

Only a process of one thread makes one, which a test run with several workers is not: each scene is
played in a process of its own.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapstore.errors import CaptureError
from snapstore.layouts.lock_watch import LockWatch
from snapstore.layouts.locks import held_locks, hold_lock, watching_locks
from snapstore.testing.backend_history import open_files
from tests.support.state_dirs import holding_locks

Scene = Callable[[Path], None]


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def new_child(before: list[str]) -> str:
    (child,) = set(children()) - set(before)
    return child


def many_threads_get_the_answers_to_their_own_questions(folder: Path) -> None:
    locks = [folder / f"{number}" for number in range(40)]
    for lock in locks:
        lock.touch()
    held = set(locks[::3])
    with holding_locks(sorted(held)):
        before = children()
        with watching_locks(), ThreadPoolExecutor(8) as pool:
            child = new_child(before)
            for _ in range(20):
                told = list(pool.map(held_locks, ([lock] for lock in locks)))
                assert told == [held & {lock} for lock in locks]
            assert child in children(), "it did not live to the end"
        assert children() == before


def it_keeps_nothing_open_but_its_pipes(folder: Path) -> None:
    before, descriptors = children(), open_files()
    with (folder / "file").open("w"), watching_locks():
        held_locks([folder / "file"])
        opened = Path(f"/proc/{new_child(before)}/fd").iterdir()
        links = [os.readlink(each) for each in opened]  # noqa: PTH115 - of a pipe, which is no path
        assert len(links) == 2
        assert all(link.startswith("pipe:") for link in links)
    assert open_files() == descriptors


def locks_of_the_asking_process_are_seen_and_survive(folder: Path) -> None:
    lock = folder / "lock"
    lock.touch()
    take = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with lock.open("rb+") as file, watching_locks():
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert held_locks([lock, folder / "missing"]) == {lock}
        assert subprocess.run([sys.executable, "-c", take, lock], capture_output=True).returncode
    with watching_locks(), hold_lock(lock, lock.parent):
        assert held_locks([lock]) == {lock}


def what_it_cannot_open_is_said(folder: Path) -> None:
    (folder / "loop").symlink_to(folder / "loop")
    with watching_locks():
        for _ in range(2):
            with pytest.raises(CaptureError, match="loop"):
                held_locks([folder / "loop"])


def where_it_was_killed_others_answer(folder: Path) -> None:
    lock = folder / "lock"
    lock.touch()
    with holding_locks([lock]):
        before = children()
        with watching_locks():
            os.kill(int(new_child(before)), signal.SIGKILL)
            for _ in range(3):
                assert held_locks([lock]) == {lock}


def after_an_interrupted_question_it_is_not_asked_again(folder: Path) -> None:
    """Else the next one would get the answer to that one."""
    held, free = folder / "held", folder / "free"
    held.touch()
    free.touch()
    watch = LockWatch()
    names = [os.fsencode(held)]
    with holding_locks([held]):
        assert watch.ask(names) == b"+0\n"

        def interrupted(pipe: int, size: int) -> bytes:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "read", interrupted)
            with pytest.raises(KeyboardInterrupt):
                watch.ask(names)
        assert watch.ask([os.fsencode(free)]) is None
    watch.close()


def ctrl_c_does_not_end_it(folder: Path) -> None:
    before = children()
    with watching_locks():
        child = new_child(before)
        held_locks([folder / "lock"])
        os.kill(int(child), signal.SIGINT)
        os.kill(int(child), signal.SIGTERM)
        held_locks([folder / "lock"])
        assert child in children()


def a_process_of_several_threads_makes_none(folder: Path) -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    before = children()
    with watching_locks():
        assert children() == before
    done.set()
    other.join()


SCENES: list[Scene] = [
    many_threads_get_the_answers_to_their_own_questions,
    it_keeps_nothing_open_but_its_pipes,
    locks_of_the_asking_process_are_seen_and_survive,
    what_it_cannot_open_is_said,
    where_it_was_killed_others_answer,
    after_an_interrupted_question_it_is_not_asked_again,
    ctrl_c_does_not_end_it,
    a_process_of_several_threads_makes_none,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_in_a_process_of_one_thread(scene: Scene, tmp_path: Path) -> None:
    script = (
        f"import sys, pathlib, tests.layouts.test_lock_watch as scenes; scenes.{scene.__name__}"
        "(pathlib.Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


_KILLED = """
import os, signal
from pathlib import Path
from snapstore.layouts.locks import watching_locks
with watching_locks():
    print(Path(f"/proc/self/task/{os.getpid()}/children").read_text(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_the_process_that_asks() -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    until = time.monotonic() + 60
    while _lives(int(done.stdout)):
        assert time.monotonic() < until
        time.sleep(0.01)


def _lives(process: int) -> bool:
    """Whether it runs: one that has ended may wait for somebody to ask how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

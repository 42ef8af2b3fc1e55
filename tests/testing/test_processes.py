"""What tests and benchmarks start ends with them, however they end."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.support.crash import PROJECT
from tests.support.processes import ChildProcess

_PARENT = """
import sys, time
from pathlib import Path
from tests.support.processes import ChildProcess
started = [ChildProcess(["sleep", "1000"], Path(sys.argv[1])) for _ in range(2)]
print(*(each.pid for each in started), flush=True)
time.sleep(1000)
"""


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_children_end_with_a_parent_that_is_killed_h77(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, tmp_path / "log"],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(map(runs, children))
        parent.kill()
        assert parent.wait(60) == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while any(map(runs, children)):
        assert time.monotonic() < deadline, "still running"
        time.sleep(0.01)


def test_a_child_outlives_the_thread_that_started_it_h77(tmp_path: Path) -> None:
    started: list[ChildProcess] = []

    def start() -> None:
        started.append(ChildProcess(["sleep", "1000"], tmp_path / "log"))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.001)
    (child,) = started
    assert runs(child.pid)
    child.kill()
    assert child.wait(60) == -signal.SIGKILL

"""Child processes of the tests: logged to a file, ended by their own id, never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_BOUND = Path(__file__).with_name("bound.py")

# A child bound to its parent is killed when the thread that started it ends: this one never does.
_spawner = ThreadPoolExecutor(1, "spawner")


def started(command: Sequence[str | Path], **how: Any) -> "subprocess.Popen[Any]":
    """As ``subprocess.Popen``: a program that is killed when this process ends, however it ends."""
    line = [sys.executable, "-I", "-S", _BOUND, str(os.getpid()), *command]
    return _spawner.submit(lambda: subprocess.Popen(line, **how)).result()


def _start_anew() -> None:
    """A forked process has none of the threads of its parent."""
    global _spawner
    _spawner = ThreadPoolExecutor(1, "spawner")


os.register_at_fork(after_in_child=_start_anew)


class ChildProcess:
    """A program whose output goes to a file; its last lines explain a failure."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = started(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout: float) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {timeout} s\n{self.tail()}") from None

    def terminate(self, timeout: float = 180) -> int:
        """SIGTERM: an orderly end."""
        if self.running:
            self._process.terminate()
        return self.wait(timeout)

    def kill(self) -> None:
        """SIGKILL: a crash."""
        if self.running:
            self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

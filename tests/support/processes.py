"""Child processes of the tests: logged to a file, ended by their own id, never left behind."""

import os
import signal
import subprocess
from pathlib import Path


class ChildProcess:
    """A program whose output goes to a file; its last lines explain a failure."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
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

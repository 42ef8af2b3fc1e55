"""A process that goes through the history of the backend contract until it is killed."""

import sys
import time
from pathlib import Path

from snapstore.model.store import StoreLocation
from tests.support.processes import ChildProcess

PROJECT = Path(__file__).resolve().parents[2]


class LiveWriter:
    """Implements Writer: runs ``python -m MODULE ARGUMENTS PROGRESS``, in ``work_dir`` its output.

    The process writes the number that it is about to reach into the file PROGRESS, 8 bytes
    big-endian, before it goes there.
    """

    def __init__(
        self, location: StoreLocation, module: str, arguments: list[str], work_dir: Path
    ) -> None:
        self.location = location
        work_dir.mkdir(parents=True, exist_ok=True)
        self._progress = work_dir / "progress"
        command = ["env", "-C", str(PROJECT), sys.executable, "-m", module, *arguments]
        self.process = ChildProcess([*command, str(self._progress)], work_dir / "output")

    def begun(self) -> int:
        return int.from_bytes(self._progress.read_bytes(), "big")

    def wait_begun(self, number: int, timeout: float = 120) -> None:
        deadline = time.monotonic() + timeout
        while not (self._progress.exists() and self.begun() >= number):
            assert self.process.running, self.process.tail()
            assert time.monotonic() < deadline, self.process.tail()
            time.sleep(0.01)

    def crash(self) -> None:
        self.process.kill()

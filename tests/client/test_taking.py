"""What a run starts besides its own threads."""

import subprocess
import sys
from pathlib import Path

from tests.support.fixtures import unpack

_SNAPSHOT = """
import os, sys
from pathlib import Path
import snapstore
place, state_dir = map(Path, sys.argv[1:])
with snapstore.create(str(place)) as repository:
    report = repository.snapshot(state_dir)
assert sum(each.status == "stored" for each in report.outcomes) > 1, "one store tells nothing"
assert not report.failed
assert "subprocess" not in sys.modules, "a program was started to ask for locks"
assert not Path(f"/proc/self/task/{os.getpid()}/children").read_text(), "a child was left"
"""


def test_a_run_asks_one_child_for_the_locks_of_all_stores(tmp_path: Path) -> None:
    """A program for each question would take 30 ms of the processor, twice for each store."""
    unpack("ks440-alos", tmp_path / "state")
    done = subprocess.run(
        [sys.executable, "-c", _SNAPSHOT, tmp_path / "repository", tmp_path / "state"],
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr

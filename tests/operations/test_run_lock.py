"""One run at a time for one application."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.errors import ConfigError, RunInProgressError
from snapstore.operations.run_lock import run_lock
from tests.support.repository import NOON

_HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from snapstore.operations.run_lock import run_lock
with run_lock(Path(sys.argv[1]), sys.argv[2], now=datetime(2026, 5, 4, 12, tzinfo=UTC)):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_run(folder: Path, application: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder), application],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child
        finally:
            child.kill()


def test_a_second_run_ends_at_once_and_says_who_is_at_work(tmp_path: Path) -> None:
    with other_run(tmp_path, "orders") as other:
        with pytest.raises(RunInProgressError) as caught, run_lock(tmp_path, "orders", now=NOON):
            pass
        assert str(other.pid) in caught.value.message
        assert caught.value.facts == {"pid": other.pid, "since": "2026-05-04T12:00:00Z"}
        with run_lock(tmp_path, "payments/a b", now=NOON):
            assert sorted(path.name for path in tmp_path.iterdir()) == [
                "orders.lock",
                "payments%2Fa%20b.lock",
            ]


def test_a_run_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    with other_run(tmp_path, "orders") as other:
        other.kill()
        other.wait()
        with run_lock(tmp_path, "orders", now=NOON):
            holder = json.loads((tmp_path / "orders.lock").read_text())
    assert holder == {"pid": os.getpid(), "since": "2026-05-04T12:00:00Z"}


def test_a_run_that_ended_leaves_no_lock_whatever_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "orders.lock").write_text('{"pid": 1, "sin')
    for _ in range(2):
        with run_lock(tmp_path, "orders", now=NOON):
            pass


def test_a_folder_that_cannot_be_made_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="lock file"), run_lock(tmp_path / "file", "a", now=NOON):
        pass

"""Kill a child process with SIGKILL at a named point of its work.

    python -m tests.support.crash MODULE:FUNCTION ARGUMENTS [POINT OCCURRENCE]

calls ``FUNCTION(reached, **ARGUMENTS)``; ``reached(point)`` is called by the work. Without a point
the child runs to its end and prints every point it came by.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def points_of(function: str, arguments: Mapping[str, str]) -> list[tuple[str, int]]:
    """Run the work to its end; return the points it came by, each with its occurrence from 1."""
    ended = _run([function, json.dumps(dict(arguments))])
    assert ended.returncode == 0, ended.stderr
    seen: dict[str, int] = {}
    points = []
    for point in json.loads(ended.stdout):
        seen[point] = seen.get(point, 0) + 1
        points.append((point, seen[point]))
    return points


def kill_at(function: str, arguments: Mapping[str, str], point: str, occurrence: int = 1) -> None:
    """Run the work until it reaches that point for that time, and kill it there."""
    ended = _run([function, json.dumps(dict(arguments)), point, str(occurrence)])
    assert ended.returncode == -signal.SIGKILL, (
        f"not killed at {point!r} ({occurrence}), ended with {ended.returncode}\n{ended.stderr}"
    )


def _run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.crash", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def _child(function: str, arguments: str, point: str | None, occurrence: int) -> None:
    points: list[str] = []
    turn = threading.Lock()

    def reached(name: str) -> None:
        with turn:
            points.append(name)
            if name == point and points.count(name) == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)

    module, _, name = function.partition(":")
    getattr(importlib.import_module(module), name)(reached, **json.loads(arguments))
    sys.stdout.write(json.dumps(points))


if __name__ == "__main__":
    _child(
        sys.argv[1],
        sys.argv[2],
        sys.argv[3] if len(sys.argv) > 3 else None,
        int(sys.argv[4]) if len(sys.argv) > 4 else 1,
    )

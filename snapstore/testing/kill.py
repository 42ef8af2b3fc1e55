"""Kill -9 a program just before one of its changes to a folder, whichever change that is.

    with Victims() as victims:
        count = len(victims.changes("package.module:work", arguments, below=folder))
        for number in range(1, count + 1):
            victims.kill("package.module:work", arguments, below=folder, at=number)
            ...                                     # look at what it left

The work is a function of keyword arguments that are JSON. It runs in a process of its own, forked
from one that has only imported it, so that a kill costs milliseconds. Counted are files that are
opened for writing, renamed, linked, removed, truncated, and folders that are made or removed, as
Python's audit events tell them. Linux only.
"""

import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_CHANGES = frozenset(
    {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink"}
)
_OPENED_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Victims:
    """A process that others are forked from; a context manager."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` is where Python starts, so what it can import from there."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "snapstore.testing.kill"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(30)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def changes(self, function: str, arguments: Mapping[str, object], *, below: Path) -> list[str]:
        """Run the work to its end; returns its changes in order, as ``os.rename name``.

        Raises RuntimeError when the work fails.
        """
        answer = self._ask(function, arguments, below, at=0)
        if answer["ended"] != 0:
            raise RuntimeError(f"{function} ended with {answer['ended']}")
        changes: list[str] = answer["changes"]
        return changes

    def kill(self, function: str, arguments: Mapping[str, object], *, below: Path, at: int) -> bool:
        """Kill the work just before its change of that number, from 1; False if it ended earlier.

        Raises RuntimeError when it failed by itself.
        """
        answer = self._ask(function, arguments, below, at=at)
        if answer["ended"] == -signal.SIGKILL:
            return True
        if answer["ended"] != 0:
            raise RuntimeError(f"{function} ended with {answer['ended']}")
        return False

    def _ask(
        self, function: str, arguments: Mapping[str, object], below: Path, at: int
    ) -> dict[str, Any]:
        order = {"function": function, "arguments": arguments, "below": str(below), "at": at}
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("there is no process to ask")
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that others are forked from has ended")
        found: dict[str, Any] = json.loads(answer)
        return found


def _serve() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        module, _, name = order["function"].partition(":")
        work = getattr(importlib.import_module(module), name)
        sys.stdout.write(json.dumps(_run(work, order)) + "\n")
        sys.stdout.flush()


def _run(work: Callable[..., object], order: Mapping[str, Any]) -> dict[str, object]:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        _be_the_victim(work, order, writable)
    os.close(writable)
    with os.fdopen(readable, "r") as pipe:
        changes = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    return {"ended": os.waitstatus_to_exitcode(status), "changes": changes}


def _be_the_victim(work: Callable[..., object], order: Mapping[str, Any], writable: int) -> None:
    below, at = order["below"], order["at"]
    numbers = itertools.count(1)

    def count(event: str, args: tuple[object, ...]) -> None:
        path = _changed(event, args)
        if path is None or (path.startswith("/") and not path.startswith(below)):
            return
        if next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(writable, f"{event} {os.path.basename(path)!r}\n".encode())  # noqa: PTH119

    sys.addaudithook(count)
    status = 0
    try:
        work(**order["arguments"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    finally:
        sys.stderr.flush()
        os._exit(status)


def _changed(event: str, args: tuple[object, ...]) -> str | None:
    """Return the path that an audit event says is about to be changed; None for other events."""
    opened = event == "open" and isinstance(args[2], int) and args[2] & _OPENED_FOR_WRITING
    if event not in _CHANGES and not opened:
        return None
    path = args[0]
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else None


if __name__ == "__main__":
    _serve()

"""A child process that is asked about lock files, once or again and again.

It is forked while this process has one thread, when a fork is safe, and may be asked when it has
several. Starting a program for a question takes fifteen times as long.
"""

import os
import signal
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from snapstore.layouts.lock_probe import answer

_LENGTH = struct.Struct(">I")
_OWN_FILES = Path("/proc/self/fd")


class LockWatch:
    """Implements what ``lock_probe`` does, for several threads; to be made in a process of one."""

    def __init__(self) -> None:
        asked, self._questions = os.pipe()
        self._answers, told = os.pipe()
        self._lock = threading.Lock()
        self._in_step = True
        self._child = os.fork()
        if self._child == 0:
            try:
                _serve(asked, told)
            finally:
                # Nothing of the program that was copied may run here, not even what cleans up.
                os._exit(0)
        os.close(asked)
        os.close(told)

    def ask(self, names: Sequence[bytes]) -> bytes | None:
        """Return what ``lock_probe.answer`` returns, or None when the child is gone."""
        with self._lock:
            if not self._in_step:
                return None
            # An interrupt in between would leave an answer that the next question would get.
            self._in_step = False
            try:
                _send(self._questions, b"\0".join(names))
                told = _receive(self._answers)
            except BrokenPipeError:
                return None
            self._in_step = told is not None
            return told

    def close(self) -> None:
        """Let the child end, and wait until it has."""
        with self._lock:
            self._in_step = False
            os.close(self._questions)
            os.close(self._answers)
        try:
            os.waitpid(self._child, 0)
        except ChildProcessError:
            # A program that ignores SIGCHLD has no children to wait for.
            return


def _serve(asked: int, told: int) -> None:
    """Answer until nobody can ask any more, which is also when the asking process has died."""
    # Ctrl-C and `kill` to the whole group are for the asking process to heed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Whatever else was open would stay so for as long as this process lives.
    for number in {int(each.name) for each in _OWN_FILES.iterdir()} - {asked, told}:
        with suppress(OSError):  # that of the listing itself
            os.close(number)
    while (names := _receive(asked)) is not None:
        _send(told, answer(names.split(b"\0")))


def _send(pipe: int, content: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(content)) + content)
    while left:
        left = left[os.write(pipe, left) :]


def _receive(pipe: int) -> bytes | None:
    """Return the next message; None at the end of all."""
    head = _exactly(pipe, _LENGTH.size)
    return None if head is None else _exactly(pipe, _LENGTH.unpack(head)[0])


def _exactly(pipe: int, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = os.read(pipe, size - len(found))
        if not part:
            return None
        found += part
    return bytes(found)

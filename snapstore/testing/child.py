"""Run a check in a process of its own, where it may die of what it looks at."""

import os
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable

import pytest


def in_child(check: Callable[[], object]) -> None:
    """Run a check in a forked process; one that fails there, or dies of a signal, fails here."""
    with tempfile.TemporaryFile() as told:
        with warnings.catch_warnings():
            # Of forks beside threads: the child does nothing but the check.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _end_with(check, told.fileno())
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            pytest.fail(
                f"the process died of {name} when it looked into a damaged copy: an engine that"
                " maps its files reads beyond the end of one that was cut; compare the sizes of the"
                " files with what they say before you open them, and raise SourceDamagedError"
            )
        told.seek(0)
        if status != 0:
            pytest.fail(told.read().decode(errors="replace"))


def _end_with(check: Callable[[], object], told: int) -> None:
    code = 1
    try:
        check()
        code = 0
    except BaseException:
        os.write(told, traceback.format_exc().encode())
    finally:
        os._exit(code)

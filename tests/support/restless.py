"""A process that moves a folder away and back, or removes it and makes it anew, without rest."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.support.processes import started

_SCRIPT = """
import os, shutil, sys
kind, folder = sys.argv[1:]
aside = folder + "-aside"
print("begun", flush=True)
while True:
    if kind == "moving":
        os.rename(folder, aside)
        os.rename(aside, folder)
    else:
        shutil.copytree(folder, aside)
        shutil.rmtree(folder)
        os.rename(aside, folder)
"""


@contextmanager
def restless(folder: Path, kind: Literal["moving", "remaking"] = "moving") -> Iterator[None]:
    """Let nothing stay in that place for long; in the end it may be there or not."""
    child = started([sys.executable, "-c", _SCRIPT, kind, str(folder)], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"begun\n"
            yield
            assert child.poll() is None
        finally:
            child.kill()

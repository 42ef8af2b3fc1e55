"""Several command lines in one child process, with a limit on its time and on its rights."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.answer import Answer

_RUN = """
import contextlib, io, json, os, sys
from snapstore.cli.main import run
answers = []
for line in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(line, {"HOME": os.environ["HOME"]})
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def run_lines(home: Path, *lines: list[str], heed_modes: bool = False) -> list[Answer]:
    """Run command lines one after the other; TimeoutExpired if that takes five minutes.

    ``heed_modes``: a mode of 0 keeps root out as it does everybody else.
    """
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(lines),
        env={**os.environ, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=_give_up_rights if heed_modes else None,
    )
    assert done.returncode == 0, done.stderr
    return [Answer(*answer) for answer in json.loads(done.stdout)]


def _give_up_rights() -> None:
    """Root gets all rights of the bounding set at ``exec``: take those out that ignore modes."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for right in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        if libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_CAPBSET_DROP)")

"""The command line on a pseudo terminal of a given width."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def shown_on_terminal(columns: int, home: Path, *arguments: object) -> list[str]:
    """Run to the end; return the lines that a terminal of that width got, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "snapstore", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**kept, "HOME": str(home), "TERM": "xterm"},
    )
    os.close(theirs)
    out = b""
    try:
        while chunk := os.read(ours, 65536):
            out += chunk
    except OSError:
        # What reading says once the other side is closed.
        pass
    os.close(ours)
    process.wait(120)
    return _ESCAPES.sub("", out.decode()).replace("\r", "").split("\n")

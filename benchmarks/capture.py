"""How long the descriptors of a large live store are held before its files are read."""

import statistics
import subprocess
import sys
import time

from benchmarks.lab import Lab
from benchmarks.rows import Row, Table
from snapstore.backends.rocksdb import RocksDBBackend
from tests.support.rocksdb import locate, make_many_tables

_OPEN = """
import sys
from rocksdict import Options, Rdict
options = Options(raw_mode=True)
options.set_disable_auto_compactions(True)
rdict = Rdict(sys.argv[1], options)
print("open", flush=True)
sys.stdin.read()
"""


def measure_capture(lab: Lab) -> tuple[list[Row], list[Table]]:
    """The store is open in another process; the capture includes the proof that it opens."""
    folder = lab.folder("live")
    location = locate(folder / "0_0", "rocksdb/counts")
    location.path.parent.mkdir(parents=True)
    make_many_tables(location.path, lab.sizes.live_files)
    backend = RocksDBBackend()
    seconds = []
    with subprocess.Popen(
        [sys.executable, "-c", _OPEN, str(location.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as live:
        assert live.stdout is not None
        assert live.stdout.readline() == b"open\n"
        for _ in range(lab.turns):
            began = time.perf_counter()
            with backend.capture(location) as capture:
                seconds.append(time.perf_counter() - began)
                tables = sum(file.name.endswith(".sst") for file in capture.files)
            if tables != lab.sizes.live_files:
                raise AssertionError(f"{tables} of {lab.sizes.live_files} tables were captured")
        assert live.stdin is not None
        live.stdin.close()
    lab.folder("live").rmdir()
    row = Row(
        work=f"capture of a live store of {lab.sizes.live_files} files, until hashing can start",
        against="-",
        figure="time",
        limit=0.5,
        measured=statistics.median(seconds),
        unit="s",
    )
    return [row], []

"""A real S3 server, SeaweedFS, from its wheel."""

import json
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.processes import ChildProcess

ACCESS_KEY = "a"
SECRET_KEY = "s"
_READY_WITHIN_S = 120
_ATTEMPTS = 3
"""Somebody else may take a free port before the server does."""
_ACTIONS = ["Admin", "Read", "Write", "List", "Tagging"]


@contextmanager
def seaweedfs_server(folder: Path) -> Iterator[str]:
    """Run one that keeps its files in ``folder``; yields its URL."""
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": _ACTIONS,
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    files = folder / "files"
    files.mkdir()
    for attempt in range(1, _ATTEMPTS + 1):
        s3, process = _started(folder, files, config)
        try:
            url = f"http://127.0.0.1:{s3}"
            if _await_ready(url, process, last=attempt == _ATTEMPTS):
                yield url
                return
        finally:
            process.kill()


def _started(folder: Path, files: Path, config: Path) -> tuple[int, ChildProcess]:
    """Start one on ports of its own; returns that of S3."""
    s3, master, volume, filer = free_ports(4)
    command = [
        str(Path(sys.executable).with_name("weed")),
        "server",
        f"-dir={files}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-master.port={master}",
        f"-volume.port={volume}",
        "-filer",
        f"-filer.port={filer}",
        "-master.volumeSizeLimitMB=1024",
        "-volume.max=0",
        "-s3",
        f"-s3.port={s3}",
        f"-s3.config={config}",
        "-s3.iam=false",
        "-s3.port.lance=0",
        "-s3.port.iceberg=0",
    ]
    return s3, ChildProcess(command, folder / "weed.log")


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, below 50000: SeaweedFS adds 10000 for its gRPC."""
    found: list[int] = []
    with ExitStack() as stack:
        for port in range(20_000 + time.time_ns() // 1000 % 20_000, 50_000):
            if len(found) == count:
                break
            pair = [stack.enter_context(socket.socket()) for _ in range(2)]
            try:
                for one, number in zip(pair, (port, port + 10_000), strict=True):
                    one.bind(("127.0.0.1", number))
            except OSError:
                continue
            found.append(port)
    return found


def _await_ready(url: str, process: ChildProcess, *, last: bool) -> bool:
    """Whether it answers; AssertionError when it does not, or has ended and is the last."""
    deadline = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < deadline and process.running:
        try:
            with urllib.request.urlopen(f"{url}/status", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            with error:
                return True
        except OSError:
            time.sleep(0.1)
    if not process.running and not last:
        return False
    raise AssertionError(f"SeaweedFS did not become ready\n{process.tail()}")

"""Disks and directories that misbehave: one that fills up, one that changes under its reader."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Mount an empty file system in memory of that size on a new folder. Root on Linux only."""
    folder.mkdir()
    options = f"size={size_bytes},mode=0777"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, *, leave_bytes: int = 0, name: str = "others") -> Path:
    """Fill the disk of a folder up to that many bytes; returns the file that does, to be removed.

    To the last byte where nothing is to be left.
    """
    path = folder / name
    with path.open("wb", buffering=0) as file:
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        with suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(1, free - leave_bytes))
        if not leave_bytes:
            file.seek(0, os.SEEK_END)
            with suppress(OSError):
                while file.write(bytes(4096)):
                    pass
    return path


@contextmanager
def restless(change: Callable[[int], None]) -> Iterator[None]:
    """Call ``change`` with 0, 1, ... in a thread of its own, without a pause, until the end.

    Whatever it raises is raised at the end.
    """
    stop = threading.Event()
    raised: list[BaseException] = []

    def work() -> None:
        number = 0
        try:
            while not stop.is_set():
                change(number)
                number += 1
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="restless")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if raised:
        raise raised[0]

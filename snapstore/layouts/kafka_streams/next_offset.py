"""Whether a `.checkpoint` notes the offset to read next, as Kafka Streams to 2.5 wrote it.

ProcessorStateManager.checkpoint of 0.10.0 to 2.5 adds one to the last offset ("the log position
after restoration"), and StoreChangelogReader goes on reading there; from 2.6 on (KAFKA-9113) the
last offset itself is noted, and one more is read next. The file does not tell which. The RocksDB
that came along does: 5.18.3 and older to 2.5, 5.18.4 from 2.6 on (gradle/dependencies.gradle).
"""

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from snapstore.errors import CaptureError
from snapstore.layouts.folders import is_folder, list_dir
from snapstore.model.regular_file import NotRegularError, read_regular

_LAST_TO_NOTE_IT = (5, 18, 3)
_OPTIONS = re.compile(r"OPTIONS-([0-9]+)")
_VERSION = re.compile(rb"^\s*rocksdb_version=([0-9]+)\.([0-9]+)\.([0-9]+)", re.MULTILINE)
_HOLDS_FOR_S = 5
_DEPTH = 2
"""``rocksdb/STORE`` and ``STORE/SEGMENT``."""

REMARK = (
    "was written by Kafka Streams 2.5 or older, which noted the offset to read next: one less is "
    "taken for the applied offset; 2.6 and newer read the next record but one"
)


def notes_next_offset(task_dir: Path) -> bool:
    """Whether any database of a task was last opened by so old a RocksDB.

    Where that is wrong, one record is applied twice, which changes nothing. Every store of a task
    asks, so an answer holds for some seconds.
    """
    return _notes_next_offset(task_dir, int(time.monotonic() / _HOLDS_FOR_S))


@lru_cache(maxsize=256)
def _notes_next_offset(task_dir: Path, at: int) -> bool:
    del at
    return any(version <= _LAST_TO_NOTE_IT for version in _versions(task_dir, _DEPTH))


def _versions(folder: Path, depth: int) -> Iterator[tuple[int, ...]]:
    newest = (-1, "")
    try:
        entries = [*list_dir(folder)]
    except CaptureError:
        return  # Told where its stores are read.
    for entry in entries:
        if match := _OPTIONS.fullmatch(entry.name):
            newest = max(newest, (int(match[1]), entry.name))
        elif depth and not entry.name.startswith(".") and is_folder(entry):
            yield from _versions(folder / entry.name, depth - 1)
    if newest[1] and (version := _version(folder / newest[1])) is not None:
        yield version


def _version(options: Path) -> tuple[int, ...] | None:
    try:
        match = _VERSION.search(read_regular(options))
    except (FileNotFoundError, NotRegularError, PermissionError, CaptureError):
        return None
    return None if match is None else tuple(int(each) for each in match.groups())

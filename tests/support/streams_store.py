"""Stores as Kafka Streams 4.3 leaves them after a clean close, made at once and of known content.

Each database has a family ``offsets`` with the applied offset of its changelog and the status 0.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.support.state_dirs import make_database

APPLICATION = "orders"


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """What one database holds: pairs of the family ``default``, and its applied offset."""

    pairs: Mapping[bytes, bytes]
    applied_offset: int


def some_pairs(count: int, *, start: int = 0, size: int = 40) -> dict[bytes, bytes]:
    """Return pairs with keys in order and values that do not compress."""
    keys = [f"k{number:08}".encode() for number in range(start, start + count)]
    return {key: hashlib.shake_128(key).digest(size) for key in keys}


def make_key_value(state_dir: Path, task: str, store: str, content: Pairs) -> Path:
    """Make ``TASK/rocksdb/STORE``; returns its folder."""
    folder = state_dir / APPLICATION / task / "rocksdb" / store
    write_database(folder, content, topic(store), task)
    return folder


def make_window(
    state_dir: Path, task: str, store: str, segments: Mapping[int, Pairs]
) -> dict[int, Path]:
    """Make ``TASK/STORE/STORE.START``, one database for each segment."""
    folders = {}
    for start, content in segments.items():
        folder = state_dir / APPLICATION / task / store / f"{store}.{start}"
        write_database(folder, content, topic(store), task)
        folders[start] = folder
    return folders


def topic(store: str) -> str:
    return f"{APPLICATION}-{store}-changelog"


def write_database(folder: Path, content: Pairs, changelog: str, task: str) -> None:
    """Make a database, or add a table to one; close it."""
    key = f"{changelog}-{task.rpartition('_')[2]}".encode()
    noted = {key: content.applied_offset.to_bytes(8, "big"), b"status": bytes(8)}
    make_database(folder, {"default": content.pairs, "offsets": noted})
    for litter in ("rocksdict-config.json", "LOG"):
        (folder / litter).unlink(missing_ok=True)

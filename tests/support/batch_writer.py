"""Write batches into a store until killed: what a process does whose crash is looked at."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from snapstore.backends.rocksdb import RocksDBBackend

DATABASE = "rocksdb/counts"
FAMILIES = ("keyValueWithTimestamp", "offsets")
APPLIED = b"applied"
PER_BATCH = 1000
KEYS = 3000


def key_of(number: int) -> bytes:
    return b"key-%06d" % (number % KEYS)


def value_of(number: int) -> bytes:
    return hashlib.shake_128(b"%d" % number).digest(1000)


def write_for_ever(reached: Callable[[str], None], *, task_dir: str) -> None:
    """Each batch holds records and the number of the last; ``reached`` follows each batch."""
    with RocksDBBackend().open_writer(Path(task_dir), DATABASE) as writer:
        writer.create(DATABASE, FAMILIES)
        for first in range(0, 1 << 30, PER_BATCH):
            numbers = range(first, first + PER_BATCH)
            last = (first + PER_BATCH - 1).to_bytes(8, "big")
            writer.write(
                DATABASE,
                {
                    FAMILIES[0]: [(key_of(number), value_of(number)) for number in numbers],
                    FAMILIES[1]: [(APPLIED, last)],
                },
            )
            reached("batch written")

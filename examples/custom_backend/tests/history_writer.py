"""An application at work: it goes through the history of the contract, a commit every 20."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from snapstore_sqlite.store import Store

from snapstore.testing.backend_contract import operation

CHANGELOG = "history:0"


@contextmanager
def opened(folder: Path) -> Iterator[Store]:
    with closing(Store(folder)) as store:
        yield store


def go_on(store: Store, last: int) -> None:
    """Apply the operations after those that the store has, up to ``last``."""
    applied = store.applied(CHANGELOG)
    first = 0 if applied is None else applied + 1
    for start in range(first, last + 1, 20):
        end = min(start + 19, last)
        done = [operation(number) for number in range(start, end + 1)]
        store.apply({each.key: each.value for each in done}, CHANGELOG, end)


def write_for_ever(folder: Path, progress: Path) -> None:
    """Note in ``progress`` a number that no operation begun exceeds, then apply up to there."""
    with opened(folder) as store, progress.open("wb", buffering=0) as reached:
        end = 19
        while True:
            os.pwrite(reached.fileno(), end.to_bytes(8, "big"), 0)
            go_on(store, end)
            end += 20
            time.sleep(0.001)


if __name__ == "__main__":
    write_for_ever(Path(sys.argv[1]), Path(sys.argv[2]))

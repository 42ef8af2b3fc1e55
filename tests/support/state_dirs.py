"""State directories made by hand, and a process that holds their locks as an application does."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocksdict import Options, Rdict, WriteOptions

Families = Mapping[str, Mapping[bytes, bytes]]

_HOLD = """
import fcntl, sys
files = [open(path, "rb+") for path in sys.argv[1:]]
for file in files:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding_locks(paths: Sequence[Path]) -> Iterator[int]:
    """Hold POSIX locks on files from a child process; yields its id.

    AssertionError when one of them is taken.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stderr is not None
        try:
            if child.stdout.readline() != b"held\n":
                raise AssertionError(child.stderr.read().decode())
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(60)


def make_database(folder: Path, families: Families) -> Path:
    """Make a RocksDB with these families and entries, flushed, without a write-ahead log."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"default", *families}
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    rdict = Rdict(str(folder), options, {name: Options(raw_mode=True) for name in names})
    unlogged = WriteOptions()
    unlogged.disable_wal = True  # type: ignore[method-assign,assignment]
    for name, entries in families.items():
        family = rdict.get_column_family(name)
        for key, value in entries.items():
            family.put(key, value, unlogged)
        family.flush()
        family.close()
    rdict.close()
    return folder


def offsets_family(
    offsets: Mapping[str, int], status: int | None = None
) -> Mapping[str, Mapping[bytes, bytes]]:
    """Return the family `offsets` with these entries (by TOPIC-PARTITION), and a row of data."""
    entries = {key.encode(): at.to_bytes(8, "big", signed=True) for key, at in offsets.items()}
    if status is not None:
        entries[b"status"] = status.to_bytes(8, "big")
    return {"default": {b"k": b"v"}, "offsets": entries}


def write_checkpoint(folder: Path, *lines: str, name: str = ".checkpoint") -> Path:
    """Write an offset file with these lines of ``TOPIC PARTITION OFFSET``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)))
    return path

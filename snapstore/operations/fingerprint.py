"""What the files of a store look like from outside, without opening one of its tables.

By what a file system says of a file (device, inode, size and both times) its hash is remembered
too. So it can stand for the bytes of a RocksDB, whose files are written by ``write`` and never
through a mapping (``OptimizeForLogWrite`` and ``OptimizeForManifestWrite`` of RocksDB's
``fs_posix.cc``; tables are immutable). Of other engines that is not known.
"""

import hashlib
import os
import stat
from pathlib import Path

import msgspec

from snapstore.errors import CaptureError
from snapstore.model.store import StoreLocation
from snapstore.ports import Layout

YOUNG_NS = 2_000_000_000
"""A file that changed so lately could change once more within the same tick of its time stamp."""

_BACKENDS = ("rocksdb",)

FileFacts = tuple[str, int, int, int, int, int, int]


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """``digest`` differs whenever anything differs; ``changed_ns`` is the latest change, by the
    file system's clock, since 1970."""

    digest: str
    changed_ns: int

    def is_settled(self, now_ns: int) -> bool:
        """Whether a later change cannot leave the same fingerprint."""
        return now_ns - self.changed_ns >= YOUNG_NS


def fingerprint(location: StoreLocation, layout: Layout) -> Fingerprint | None:
    """Look at a store; None where its files do not tell enough.

    It covers all files in the store's folder, those beside it that belong to it, the offsets that
    are noted in a file, and the names of its neighbours: some layouts go by them.
    """
    if location.backend not in _BACKENDS:
        return None
    try:
        files = file_facts(str(location.path))
        if files is None:
            return None
        beside = [_facts(name, os.lstat(location.task_dir / name)) for name in location.side_files]
        noted = layout.noted_offsets(location)
        neighbours = [sorted(_names(folder)) for folder in _folders_around(location)]
    except (OSError, CaptureError):
        # Whatever it is, the way that reads the files will say so.
        return None
    told = (location, sorted(files), beside, noted, neighbours)
    return Fingerprint(
        digest=hashlib.sha256(msgspec.msgpack.encode(told, enc_hook=str)).hexdigest(),
        changed_ns=max((max(facts[4:6]) for facts in (*files, *beside)), default=0),
    )


def file_facts(folder: str, prefix: str = "") -> list[FileFacts] | None:
    """Return the facts of all files below a folder; None where a link or a device is among them.

    Raises OSError, also for what goes away meanwhile.
    """
    found: list[FileFacts] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found.append(_facts(name, status))
            elif stat.S_ISDIR(status.st_mode):
                inner = file_facts(entry.path, f"{name}/")
                if inner is None:
                    return None
                found.append((f"{name}/", 0, 0, 0, 0, 0, 0))
                found += inner
            else:
                return None
    return found


def _facts(name: str, status: os.stat_result) -> FileFacts:
    return (
        name,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_mode,
    )


def _folders_around(location: StoreLocation) -> tuple[Path, ...]:
    return (location.task_dir, location.path.parent) if location.root != "." else ()


def _names(folder: Path) -> list[str]:
    return os.listdir(folder)  # noqa: PTH208 - names only

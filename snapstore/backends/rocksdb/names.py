"""What the files of a RocksDB directory are called, and what CURRENT may say.

Source: ``file/filename.cc`` of RocksDB. CURRENT holds the name of one MANIFEST and a line feed; it
is replaced by renaming, so a reader never sees half of it.
"""

import re
from collections.abc import Iterable

from snapstore.errors import SourceDamagedError
from snapstore.model.folder_name import check_folder as check_folder
from snapstore.model.folder_name import child as child

CURRENT = "CURRENT"
_CURRENT_CONTENT = re.compile(rb"(MANIFEST-[0-9]+)\n")
_TABLE = re.compile(r"[0-9]+\.sst")
_LOG = re.compile(r"[0-9]+\.log")
_BLOB = re.compile(r"[0-9]+\.blob")
_OPTIONS = re.compile(r"OPTIONS-[0-9]+")
_OTHER = re.compile(r"CURRENT|LOCK|IDENTITY|MANIFEST-[0-9]+|LOG(\.old\.[0-9]+)?|[0-9]+\.dbtmp")


def is_table(name: str) -> bool:
    return name.endswith(".sst") and _TABLE.fullmatch(name) is not None


def is_log(name: str) -> bool:
    """Whether it is a write-ahead log (not RocksDB's own messages, which are in LOG)."""
    return name.endswith(".log") and _LOG.fullmatch(name) is not None


def is_blob(name: str) -> bool:
    return name.endswith(".blob") and _BLOB.fullmatch(name) is not None


def is_options(name: str) -> bool:
    return _OPTIONS.fullmatch(name) is not None


def is_rocksdb(name: str) -> bool:
    """Whether RocksDB itself would make a file of that name."""
    kinds = (_TABLE, _LOG, _BLOB, _OPTIONS, _OTHER)
    return any(kind.fullmatch(name) is not None for kind in kinds)


def number(name: str) -> int:
    """The number in the name of a table, a log or an OPTIONS file."""
    return int(name.removeprefix("OPTIONS-").partition(".")[0])


def on_missing_manifest(manifest: str, listed: Iterable[str]) -> str:
    """Say what is wrong where CURRENT names a MANIFEST that is not there."""
    others = sorted(name for name in listed if name.startswith("MANIFEST-"))
    there = f"there is {', '.join(others)}" if others else "there is none"
    return f"it is missing: CURRENT names {manifest}, and {there}"


def named_manifest(current: bytes, database: str) -> str:
    """Return the name that CURRENT holds.

    Raises SourceDamagedError unless it is whole: RocksDB does not open such a database either.
    """
    match = _CURRENT_CONTENT.fullmatch(current)
    if match is None:
        raise SourceDamagedError(
            f"{child(database, CURRENT)} does not name a MANIFEST",
            hint="the database does not open; rebuild the store from its changelog",
            file=child(database, CURRENT),
            content=current[:40].decode("ascii", "backslashreplace"),
        )
    return match[1].decode()

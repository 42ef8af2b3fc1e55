"""Why a database does not open here although its application opens it.

RocksDB keeps some of what it needs in the program that opens it: comparators, merge operators,
table formats, other folders for tables (`db_paths`), an encrypting environment. A database that
needs such is no damaged one.
"""

import re
from collections.abc import Iterator

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.databases import Found, list_names
from snapstore.errors import CaptureError, StoreUnsupportedError
from snapstore.model.regular_file import NotRegularError, read_regular

_COMPARATOR = re.compile(r"does not match existing comparator (\S+)")
_MAGIC = re.compile(r"Bad table magic number: expected \d+, found (\d+)")
_TABLE_FORMATS = {
    0x8242229663BF9564: "PlainTable",
    0x4F3418EB7A8F13B8: "PlainTable",
    0x926789D0C5F17873: "CuckooTable",
}
"""Magic numbers of RocksDB's other table formats (table/*/..._builder.cc)."""

_MISSING_TABLE = re.compile(r"\.sst\b.*(?:No such file or directory|is missing)")
_ELSEWHERE = (
    re.compile(r"SST files in (.+) dir, Total Num: "),
    re.compile(r"Directory from db_paths/cf_paths does not yet exist: (.+)"),
)
_OWN = re.compile(r"Write Ahead Log file in (.+?): ")
_OTHER_PATH = re.compile(rb"\x41\x01[\x01-\x03]")
"""In the MANIFEST: a table that lies in another folder than the first (kPathId, version_edit.h)."""

_NOT_DAMAGE = (
    "Invalid argument:",
    "Not implemented:",
    "Operation not supported",
    "newer version of RocksDB",
    "Unknown Footer version",
    "unknown checksum type",
    "unsupported compression",
    "not supported or corrupted",
    "is not linked with the binary",
    "unknown tag",
)
_ENCRYPTION_PREFIX_BYTES = 4096
"""Of each file of RocksDB's EncryptedEnv, unless another length was set (env_encryption.h)."""

_OPTIONS_SHOWN = {
    "comparator": "leveldb.BytewiseComparator",
    "merge_operator": "nullptr",
    "table_factory": "BlockBasedTable",
    "wal_dir": "",
}
"""What OPTIONS says of a database that needs nothing of its program."""


def unsupported(found: Found, reason: str) -> StoreUnsupportedError | None:
    """Return the error where ``reason``, RocksDB's words, tell of something that is not here.

    None where they tell of damage.
    """
    why = _why(found, reason)
    return None if why is None else refused(found.name, why)


def refused(database: str, why: str) -> StoreUnsupportedError:
    return StoreUnsupportedError(
        f"{database} cannot be opened by snapstore, which is no damage: {why}",
        hint="take the snapshot from the changelog: --from-changelog; nothing else is done here",
        database=database,
        reason=why,
    )


def looks_encrypted(found: Found) -> bool:
    """Whether CURRENT may be one that an encrypting environment has written."""
    current = _read(found, names.CURRENT) or b""
    return len(current) > _ENCRYPTION_PREFIX_BYTES and not current.isascii()


def on_other_folders(wal_dir: str) -> str:
    """Say what OPTIONS tells by a ``wal_dir``: RocksDB sets it where tables lie elsewhere, too."""
    return (
        f"OPTIONS names wal_dir {wal_dir}: its write-ahead log, or its tables (db_paths), lie in "
        "other folders"
    )


def _why(found: Found, reason: str) -> str | None:
    if match := _COMPARATOR.search(reason):
        return f"its keys are ordered by the comparator {match[1]}"
    if match := _MAGIC.search(reason):
        form = _TABLE_FORMATS.get(int(match[1])) or _own_options(found).get("table_factory")
        return None if form is None else f"its tables are of the format {form}"
    if _MISSING_TABLE.search(reason):
        return _tables_elsewhere(found)
    if not any(words in reason for words in _NOT_DAMAGE):
        return None
    own = ", ".join(f"{key}={value}" for key, value in _own_options(found).items())
    return f"{reason} (OPTIONS: {own})" if own else reason


def _tables_elsewhere(found: Found) -> str | None:
    """Tell that tables are missing here because they lie in other folders (`db_paths`).

    Those are in no file but RocksDB's LOG, which Kafka Streams leaves empty by default.
    """
    log = _read(found, "LOG")
    if log and (named := set(_table_folders(log.decode(errors="replace"), found))):
        elsewhere = ", ".join(sorted(filter(None, named)))
        return f"its tables lie in {elsewhere} (db_paths)" if elsewhere else None
    if wal_dir := _own_options(found).get("wal_dir"):
        return on_other_folders(wal_dir)
    listed = list_names(found.path)
    if not any(map(names.is_table, listed)):
        return "none of its tables is in its folder: either db_paths names others, or they are gone"
    manifests = (_read(found, name) for name in listed if name.startswith("MANIFEST-"))
    if any(content is not None and _OTHER_PATH.search(content) for content in manifests):
        return "some of its tables lie in other folders (db_paths)"
    return None


def _table_folders(log: str, found: Found) -> Iterator[str]:
    """Yield the folders of tables; empty for the database's own, whatever the application calls it,
    as in a container."""
    own = {match[1] for match in _OWN.finditer(log)} | {str(found.path.absolute())}
    for pattern in _ELSEWHERE:
        for match in pattern.finditer(log):
            yield "" if match[1] in own else match[1]


def _own_options(found: Found) -> dict[str, str]:
    """Return what the newest OPTIONS file names that comes with the application."""
    files = sorted(filter(names.is_options, list_names(found.path)), key=names.number)
    content = _read(found, files[-1]) if files else None
    lines = (line.strip() for line in (content or b"").decode(errors="replace").splitlines())
    pairs = (line.partition("=") for line in lines)
    return {
        key: value
        for key, _, value in pairs
        if key in _OPTIONS_SHOWN and value not in ("", _OPTIONS_SHOWN[key])
    }


def _read(found: Found, name: str) -> bytes | None:
    try:
        return read_regular(found.path / name)
    except (FileNotFoundError, NotRegularError, PermissionError, CaptureError):
        return None

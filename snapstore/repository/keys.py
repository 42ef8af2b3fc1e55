"""How keys are spelled; no other module builds or takes one apart."""

import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from urllib.parse import quote_from_bytes, unquote_to_bytes

from snapstore.errors import ManifestInvalidError, UnsafePathError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.ports import ObjectStat

MARKER = "snapstore.json"
MARKER_COPY = "snapstore.copy.json"
BLOBS = "blobs/"
MANIFESTS = "manifests/"
CATALOG = "catalog/"
PINS = "pins/"
CONDEMNED = "condemned/"
SWEPT = "swept/"
REMOVED = "removed/"
QUARANTINE = "quarantine/"
LEASES = "leases/"
PROBES = LEASES + "probe-"
CLOCKS = LEASES + "clock-"
FOLDERS = (
    BLOBS,
    MANIFESTS,
    CATALOG,
    PINS,
    CONDEMNED,
    SWEPT,
    REMOVED,
    QUARANTINE,
    LEASES,
)

_LITTER = frozenset({"Thumbs.db", "desktop.ini"})
_LITTER_FOLDERS = frozenset({"lost+found", "$RECYCLE.BIN", "@eaDir", ".snapshot", ".Trash-0"})
_DIGITS = 20
_NO_CHANGELOG = "none".rjust(_DIGITS, "-")
_TIME = "%Y%m%dT%H%M%S"
_BLOB_NAME = re.compile(r"[0-9a-f]{64}(\.[0-9a-z]{1,32})?")
_ID = re.compile(r"[0-9a-f]{64}")
_LEASE = re.compile(r"leases/[a-z]+/[0-9]{20}(\.free)?")
_ENTRY = re.compile(
    rf"(?:(?P<offset>[0-9]{{{_DIGITS}}})(?:x(?P<count>[1-9][0-9]*))?|{_NO_CHANGELOG})"
    r"-(?P<time>[0-9]{8}T[0-9]{6})\.(?P<ms>[0-9]{3})Z-(?P<id>[0-9a-f]{64})\.json"
)


def is_litter(key: str) -> bool:
    """Whether a console, a file manager or a file system has put it there, and no snapstore ever.

    Consoles make "folders" that are empty objects; NFS keeps removed files that are open as
    ``.nfs...``; ``lost+found`` is fsck's.
    """
    parts = key.split("/")
    return (
        parts[-1] == ""
        or parts[-1].startswith(".")
        or parts[-1] in _LITTER
        or not _LITTER_FOLDERS.isdisjoint(parts)
    )


def segment(name: str) -> str:
    """Encode one name as one part of a key: ``[A-Za-z0-9._-]`` stay, the rest becomes ``%XX``.

    ``.`` and ``..`` are encoded too, so that no part of a key moves about in a file system.
    Raises UnsafePathError for an empty name.
    """
    if not name:
        raise UnsafePathError("an empty name cannot be stored")
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote_from_bytes(name.encode("utf-8", "surrogateescape"), safe="").replace("~", "%7E")


def name_of(part: str) -> str:
    """Decode what ``segment`` made.

    Raises ValueError for anything it would not have made, so that one name has one key.
    """
    name = unquote_to_bytes(part).decode("utf-8", "surrogateescape")
    if not name or segment(name) != part:
        raise ValueError(f"not a part of a key: {part!r}")
    return name


def application_prefix(application: str) -> str:
    """Where the catalog entries of one application are."""
    return f"{CATALOG}{segment(application)}/"


def store_prefix(store: StoreId) -> str:
    """Where the catalog entries of one store are."""
    return f"{application_prefix(store.application)}{segment(store.task)}/{segment(store.store)}/"


def entry(listed: ListedSnapshot) -> str:
    """The key of a catalog entry: what listing and choosing need is in it."""
    if listed.offset_sum is None:
        order = _NO_CHANGELOG
    else:
        order = f"{listed.offset_sum:0{_DIGITS}}"
        if listed.changelogs != 1:
            order += f"x{listed.changelogs}"
    moment = listed.captured_at.astimezone(UTC)
    time = f"{moment.strftime(_TIME)}.{moment.microsecond // 1000:03}Z"
    return f"{store_prefix(listed.store)}{order}-{time}-{listed.id}.json"


def parse_entry(key: str) -> ListedSnapshot:
    """Take the key of a catalog entry apart.

    Raises ValueError for a key that ``entry`` would not have made.
    """
    parts = key.split("/")
    found = _ENTRY.fullmatch(parts[-1])
    if len(parts) != 5 or f"{parts[0]}/" != CATALOG or not found:
        raise ValueError(f"not the key of a catalog entry: {key!r}")
    moment = datetime.fromisoformat(found["time"]).replace(
        microsecond=int(found["ms"]) * 1000, tzinfo=UTC
    )
    offset_sum = None if found["offset"] is None else int(found["offset"])
    count = int(found["count"] or 1)
    if found["count"] == "1":
        raise ValueError(f"not the key of a catalog entry: {key!r}")
    return ListedSnapshot(
        store=StoreId(*(name_of(part) for part in parts[1:4])),
        id=found["id"],
        captured_at=moment,
        offset_sum=offset_sum,
        changelogs=0 if offset_sum is None else count,
    )


def is_blob_name(name: str) -> bool:
    """Whether it is a hash in hex, or one followed by the run that stored the bytes anew."""
    return _BLOB_NAME.fullmatch(name) is not None


def blob(name: str) -> str:
    return f"{BLOBS}{name[:2]}/{name}"


def condemned(name: str) -> str:
    """The mark that a blob is to be deleted, and that nobody may name it again."""
    return f"{CONDEMNED}{name[:2]}/{name}"


def manifest(snapshot_id: str) -> str:
    """The key of a manifest.

    Raises ManifestInvalidError when the id is none: ids come from catalog entries.
    """
    if not _ID.fullmatch(snapshot_id):
        raise ManifestInvalidError("a snapshot id is not a SHA-256 in hex", id=snapshot_id)
    return f"{MANIFESTS}{snapshot_id[:2]}/{snapshot_id}.json.zst"


def pin(snapshot_id: str) -> str:
    return f"{PINS}{snapshot_id}"


def removed(snapshot_id: str) -> str:
    """The mark that a snapshot was taken out on purpose: its entry is not to be rebuilt."""
    return f"{REMOVED}{snapshot_id}"


def parsed(
    stats: Iterable[ObjectStat], parse: Callable[[str], str], strange: list[str]
) -> dict[str, ObjectStat]:
    """Return what ``parse`` makes of the keys; those it raises ValueError for go to ``strange``."""
    found = {}
    for stat in stats:
        try:
            found[sys.intern(parse(stat.key))] = stat
        except (ValueError, ManifestInvalidError):
            strange.append(stat.key)
    return found


def parse_pin(key: str) -> str:
    """Return the id of the snapshot that a pin keeps; raises ValueError for another key."""
    return _parse_id(key, PINS)


def parse_removed(key: str) -> str:
    """Return the id that a mark says was taken out; raises ValueError for another key."""
    return _parse_id(key, REMOVED)


def is_lease(key: str) -> bool:
    """Whether it belongs to a lease, or to a look at the storage's clock or abilities."""
    return key.startswith((PROBES, CLOCKS)) or _LEASE.fullmatch(key) is not None


def _parse_id(key: str, prefix: str) -> str:
    snapshot_id = key.removeprefix(prefix)
    if not _ID.fullmatch(snapshot_id):
        raise ValueError(f"not the key of a snapshot below {prefix}: {key!r}")
    return snapshot_id


def swept(moment: datetime, run: str, number: int) -> str:
    """One of the lists of names that a sweep found gone."""
    return f"{SWEPT}{moment.astimezone(UTC).strftime(_TIME)}-{run}-{number:04}.json"


def quarantined(run: str, key: str) -> str:
    """Where what a repair takes away is kept: its own key below the run."""
    return f"{QUARANTINE}{run}/{key}"


def parse_blob(key: str) -> str:
    """Return the name of a blob from its key; raises ValueError for one that is none."""
    name = key.rpartition("/")[2]
    if not is_blob_name(name) or blob(name) != key:
        raise ValueError(f"not the key of a blob: {key!r}")
    return name


def parse_condemned(key: str) -> str:
    """Return the name that a mark condemns; raises ValueError for a key that is no mark."""
    name = key.rpartition("/")[2]
    if not is_blob_name(name) or condemned(name) != key:
        raise ValueError(f"not the key of a mark: {key!r}")
    return name


def parse_manifest(key: str) -> str:
    """Return the snapshot id from the key of its manifest; raises ValueError for another key."""
    snapshot_id = key.rpartition("/")[2].removesuffix(".json.zst")
    if not _ID.fullmatch(snapshot_id) or manifest(snapshot_id) != key:
        raise ValueError(f"not the key of a manifest: {key!r}")
    return snapshot_id

"""What a manifest may say: the one validation for writing, reading, verifying and restoring.

Names in a manifest are data of others, and become paths. Limits are what file systems and stores
can really have: a manifest beyond them was not written by a capture.
"""

import hashlib
import re
from collections.abc import Iterator

from snapstore.errors import ManifestInvalidError, UnsafePathError
from snapstore.model.snapshot import Description, FileEntry, Manifest

MAX_FILES = 200_000
"""6 TB in tables of 32 MiB, or a segment an hour for three years."""
WORK_FOLDER = ".snapstore"

_MAX_PARTS = 64
_PART_LIMIT_BYTES = 255  # NAME_MAX
_NAME_LIMIT_BYTES = 4000  # PATH_MAX, less some room for the target
_SHOWN = 10
_SHOWN_CHARACTERS = 300
_GREATEST_OFFSET = 2**63 - 1
_GREATEST_PARTITION = 2**31 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"[0-9a-f]{64}(\.[0-9a-z]{1,32})?")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")  # org.apache.kafka.common.internals.Topic
_PLUGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def fault_of_name(name: str) -> str | None:
    """Say what is wrong with a name relative to a task directory, or None."""
    if not name:
        return "is empty"
    if name.startswith("/"):
        return "is absolute"
    if "\\" in name:
        return "holds a backslash"
    if _CONTROL.search(name):
        return "holds a control character or is not UTF-8"
    if len(name.encode()) > _NAME_LIMIT_BYTES:
        return f"is longer than {_NAME_LIMIT_BYTES} bytes"
    parts = name.split("/")
    if len(parts) > _MAX_PARTS:
        return f"is nested {len(parts)} deep, and {_MAX_PARTS} is the limit"
    for part in parts:
        if part in ("", ".", "..", WORK_FOLDER):
            return f"holds the part {part!r}"
        if len(part.encode()) > _PART_LIMIT_BYTES:
            return f"holds a part that is longer than {_PART_LIMIT_BYTES} bytes"
    return None


def lies_in(name: str, folder: str) -> bool:
    """Whether a relative name is the folder itself or something below it."""
    return folder == "." or name == folder or name.startswith(folder + "/")


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest that no store can have, or that leads a restore elsewhere.

    Raises UnsafePathError with the first bad ``names``, or ManifestInvalidError.
    """
    store = manifest.description.store
    if len(manifest.files) > MAX_FILES:
        raise ManifestInvalidError(
            f"the manifest of {store} names {len(manifest.files)} files, and {MAX_FILES} is the"
            " limit",
            files=len(manifest.files),
            limit=MAX_FILES,
        )
    if bad := [*_limited(_bad_names(manifest))]:
        raise UnsafePathError(
            f"refused: a manifest of {_shown(str(store))} holds a bad name: {bad[0]}",
            hint="the snapshot was not written by snapstore, or was tampered with",
            names=bad,
        )
    if bad := [*_limited(_bad_places(manifest))]:
        raise ManifestInvalidError(
            f"a manifest of {_shown(str(store))} is of no store: {bad[0]}", names=bad
        )
    check_description(manifest.description)
    for file in manifest.files:
        _check_content(file)


def check_description(description: Description) -> None:
    """Refuse plug-ins, topics and offsets that cannot be. Raises ManifestInvalidError."""
    for kind, name in (("layout", description.layout), ("backend", description.backend)):
        if not _PLUGIN.fullmatch(name):
            raise ManifestInvalidError(f"{_shown(name)} is not the name of a {kind}")
    seen = set()
    for each in description.positions:
        changelog = each.position.changelog
        if not _TOPIC.fullmatch(changelog.topic):
            raise ManifestInvalidError(f"{_shown(changelog.topic)} is not the name of a topic")
        if not 0 <= changelog.partition <= _GREATEST_PARTITION:
            raise ManifestInvalidError(f"there is no partition {changelog.partition}")
        if each.position.applied_offset > _GREATEST_OFFSET:
            raise ManifestInvalidError(f"there is no offset {each.position.applied_offset}")
        if changelog in seen:
            raise ManifestInvalidError(f"{changelog} is named twice")
        seen.add(changelog)


def _bad_names(manifest: Manifest) -> Iterator[str]:
    description = manifest.description
    store = description.store
    for kind, name in (("application", store.application), ("store", store.store)):
        if "/" in name or fault_of_name(name):
            yield f"{_shown(name)} (name of the {kind})"
    folders = (name for name in (description.root, *description.databases) if name != ".")
    files = (file.name for file in manifest.files)
    for names in ((store.task,), folders, files):
        for name in names:
            if fault := fault_of_name(name):
                yield f"{_shown(name)} {fault}"


def _bad_places(manifest: Manifest) -> Iterator[str]:
    """Yield files that share a place, or lie in the folder of another store.

    A side file lies beside its store's folder, or beside a folder above that.
    """
    root = manifest.description.root
    above = {".", *_folders_above(root)}
    for database in manifest.description.databases:
        if not lies_in(database, root):
            yield f"{_shown(database)} lies outside the store's folder {_shown(root)}"
    names: set[str] = set()
    folders: set[str] = set()
    for file in manifest.files:
        name = file.name
        if name in names:
            yield f"{_shown(name)} occurs twice"
        names.add(name)
        parent = name.rpartition("/")[0] or "."
        if not lies_in(name, root) and parent not in above:
            yield f"{_shown(name)} lies outside the store's folder {_shown(root)}"
        while parent != "." and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0] or "."
    for name in sorted(names & folders):
        yield f"{_shown(name)} is a file and a folder"


def _folders_above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _check_content(file: FileEntry) -> None:
    if file.size < 0 or not 0 <= file.mode <= 0o777 or not _SHA256.fullmatch(file.sha256):
        raise ManifestInvalidError(f"size, mode or hash of {file.name!r} cannot be right")
    if (file.blob is None) == (file.inline is None):
        raise ManifestInvalidError(f"{file.name!r} needs either a blob or its bytes")
    if file.blob is not None and not (
        file.blob == file.sha256
        or (_BLOB.fullmatch(file.blob) and file.blob.startswith(file.sha256))
    ):
        raise ManifestInvalidError(f"the blob of {file.name!r} is not named by its hash")
    if file.inline is not None and (
        len(file.inline) != file.size or hashlib.sha256(file.inline).hexdigest() != file.sha256
    ):
        raise ManifestInvalidError(f"the bytes of {file.name!r} do not fit their size and hash")


def _limited(found: Iterator[str]) -> Iterator[str]:
    """Yield the first faults: there may be as many as files."""
    for number, fault in enumerate(found):
        if number == _SHOWN:
            yield "and more"
            return
        yield fault


def _shown(name: str) -> str:
    shown = repr(name)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."

"""Manifests: which files a snapshot is made of."""

import hashlib
import re
import unicodedata
from pathlib import PurePosixPath

import zstandard

from snapstore.errors import (
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnsafePathError,
)
from snapstore.model.snapshot import FileEntry, Manifest
from snapstore.ports import ObjectStorage
from snapstore.repository import encoding, keys

MAX_BYTES = 256 << 20
MAX_STORED_BYTES = 64 << 20
_LEVEL = 1
_GREATEST_OFFSET = 2**63 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Manifests:
    """The manifests of one repository."""

    def __init__(self, storage: ObjectStorage, *, read_back: bool) -> None:
        self._storage = storage
        self._read_back = read_back

    def put(self, manifest: Manifest) -> str:
        """Store a manifest and return its id: the hash of its encoding.

        Raises UnsafePathError or ManifestInvalidError when no reader would accept it.
        """
        check(manifest)
        try:
            body = encoding.encode(manifest)
        except UnicodeEncodeError as error:
            raise UnsafePathError(
                f"a name of {manifest.description.store!r} is not UTF-8"
            ) from error
        stored = zstandard.ZstdCompressor(level=_LEVEL).compress(body)
        if len(body) > MAX_BYTES or len(stored) > MAX_STORED_BYTES:
            raise ManifestInvalidError(
                f"{manifest.description.store} has too many files for one manifest",
                files=len(manifest.files),
                bytes=len(body),
            )
        snapshot_id = hashlib.sha256(body).hexdigest()
        try:
            self._storage.put(keys.manifest(snapshot_id), stored, if_absent=True)
        except ObjectExistsError:
            # Named by its content: an earlier try of the same put got through.
            self.load(snapshot_id)
        if self._read_back:
            self.load(snapshot_id)
        return snapshot_id

    def load(self, snapshot_id: str) -> Manifest:
        """Read a manifest, and check it before anything in it is believed.

        Raises ManifestInvalidError, UnsafePathError, FormatUnsupportedError.
        """
        what = f"the manifest of snapshot {snapshot_id[:12]}"
        try:
            stored = self._storage.get(keys.manifest(snapshot_id), limit_bytes=MAX_STORED_BYTES)
        except ObjectNotFoundError as error:
            raise ManifestInvalidError(f"{what} is missing", id=snapshot_id) from error
        body = _decompress(stored, what)
        if hashlib.sha256(body).hexdigest() != snapshot_id:
            raise ManifestInvalidError(
                f"{what} is damaged: it does not hash to its id", id=snapshot_id
            )
        manifest = encoding.decode(body, Manifest, what=what)
        check(manifest)
        return manifest


def check(manifest: Manifest) -> None:
    """Refuse names that lead elsewhere, and entries that contradict themselves or one another.

    Raises UnsafePathError, or ManifestInvalidError.
    """
    description = manifest.description
    for folder in (description.root, *description.databases):
        if folder != ".":
            check_name(folder)
    for file in manifest.files:
        check_name(file.name)
        _check_content(file)
    for each in description.positions:
        if each.position.applied_offset > _GREATEST_OFFSET:
            raise ManifestInvalidError(f"a manifest of {description.store} has no such offset")
    names = {file.name for file in manifest.files}
    if len(names) != len(manifest.files):
        raise ManifestInvalidError(f"a manifest of {description.store} names a file twice")
    for name in names:
        for parent in PurePosixPath(name).parents:
            if str(parent) in names:
                raise ManifestInvalidError(
                    f"a manifest of {description.store} names {str(parent)!r} as file and folder"
                )


def check_name(name: str) -> None:
    """Refuse a file name that is not plainly below the folder it is joined to.

    Raises UnsafePathError for absolute names, empty, ``.`` and ``..`` parts, control characters and
    names that are not UTF-8.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise UnsafePathError(f"a file name leads outside its folder: {name!r}", name=repr(name))
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise UnsafePathError(
            f"a file name holds a control character or is not UTF-8: {name!r}", name=repr(name)
        )


def _check_content(file: FileEntry) -> None:
    if file.size < 0 or not 0 <= file.mode <= 0o777 or not _SHA256.fullmatch(file.sha256):
        raise ManifestInvalidError(f"size, mode or hash of {file.name!r} cannot be right")
    if (file.blob is None) == (file.inline is None):
        raise ManifestInvalidError(f"{file.name!r} needs either a blob or its bytes")
    if file.blob is not None and not (
        keys.is_blob_name(file.blob) and file.blob.startswith(file.sha256)
    ):
        raise ManifestInvalidError(f"the blob of {file.name!r} is not named by its hash")
    if file.inline is not None and (
        len(file.inline) != file.size or hashlib.sha256(file.inline).hexdigest() != file.sha256
    ):
        raise ManifestInvalidError(f"the bytes of {file.name!r} do not fit their size and hash")


def _decompress(stored: bytes, what: str) -> bytes:
    """Expand no more than a manifest may have, whatever the frame claims."""
    try:
        with zstandard.ZstdDecompressor(max_window_size=MAX_STORED_BYTES).stream_reader(
            stored
        ) as reader:
            body = reader.read(MAX_BYTES + 1)
    except zstandard.ZstdError as error:
        raise ManifestInvalidError(f"{what} is damaged: {error}") from error
    if len(body) > MAX_BYTES:
        raise ManifestInvalidError(f"{what} is larger than any manifest may be", limit=MAX_BYTES)
    return body

"""Manifests: which files a snapshot is made of."""

import hashlib

import zstandard

from snapstore.errors import (
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnsafePathError,
)
from snapstore.model.manifest_rules import MAX_FILES, check_manifest
from snapstore.model.snapshot import Manifest
from snapstore.ports import ObjectStorage
from snapstore.repository import encoding, keys

MAX_BYTES = 256 << 20
MAX_STORED_BYTES = 64 << 20
_LEVEL = 1
_CHUNK = 1 << 20
_MAX_OBJECTS = 2 * MAX_FILES
_MAX_VALUES = 10 * MAX_FILES
"""JSON has a brace for every object, and a comma between any two values: more of them, names that
hold some included, are no manifest, and are not built in memory to find that out."""


class Manifests:
    """The manifests of one repository."""

    def __init__(self, storage: ObjectStorage, *, read_back: bool) -> None:
        self._storage = storage
        self._read_back = read_back

    def put(self, manifest: Manifest) -> str:
        """Store a manifest and return its id: the hash of its encoding.

        Raises UnsafePathError or ManifestInvalidError when no reader would accept it.
        """
        try:
            check_manifest(manifest)
        except UnsafePathError as error:
            # What is written here was read from a disk just now.
            error.hint = (
                "rename it while the application is stopped, or name what else to take: "
                "--application, --task, or stores"
            )
            raise
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
        check_manifest(manifest)
        return manifest


def _decompress(stored: bytes, what: str) -> bytes:
    """Expand no more than a manifest may have, whatever the frame claims."""
    body = bytearray()
    objects = values = 0
    try:
        with zstandard.ZstdDecompressor(max_window_size=MAX_STORED_BYTES).stream_reader(
            stored
        ) as reader:
            while chunk := reader.read(_CHUNK):
                body += chunk
                objects += chunk.count(b"{")
                values += chunk.count(b",")
                if len(body) > MAX_BYTES or objects > _MAX_OBJECTS or values > _MAX_VALUES:
                    raise ManifestInvalidError(
                        f"{what} is larger than any manifest may be: over {len(body)} bytes,"
                        f" {objects} objects, {values} values",
                        limit_bytes=MAX_BYTES,
                        limit_files=MAX_FILES,
                    )
    except zstandard.ZstdError as error:
        raise ManifestInvalidError(f"{what} is damaged: {error}") from error
    return bytes(body)

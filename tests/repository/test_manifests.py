"""What a manifest may say, and what a reader does with one that lies."""

import hashlib
from pathlib import Path

import msgspec
import pytest
import zstandard

from snapstore.errors import FormatUnsupportedError, ManifestInvalidError, UnsafePathError
from snapstore.model.snapshot import FORMAT, FileEntry, Manifest
from snapstore.repository import Repository, encoding, keys, manifests
from tests.support.repository import describe, make_repository

EMPTY = hashlib.sha256(b"").hexdigest()


def blob_file(name: str, content: bytes = b"") -> FileEntry:
    sha256 = hashlib.sha256(content).hexdigest()
    return FileEntry(name=name, size=len(content), mode=0o640, sha256=sha256, blob=sha256)


def inline_file(name: str, content: bytes) -> FileEntry:
    sha256 = hashlib.sha256(content).hexdigest()
    return FileEntry(name=name, size=len(content), mode=0o640, sha256=sha256, inline=content)


def manifest_of(*files: FileEntry) -> Manifest:
    return Manifest(format=FORMAT, description=describe(), files=files)


def store_raw(repository: Repository, body: bytes) -> str:
    """Put bytes as the manifest that hashes to them, as an attacker could."""
    snapshot_id = hashlib.sha256(body).hexdigest()
    repository.storage.put(keys.manifest(snapshot_id), zstandard.compress(body))
    return snapshot_id


def store_unchecked(repository: Repository, manifest: Manifest) -> str:
    return store_raw(repository, encoding.encode(manifest))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path)


def test_a_manifest_comes_back_as_it_was(repository: Repository) -> None:
    manifest = manifest_of(
        inline_file("rocksdb/counts/CURRENT", b"MANIFEST-000005\n"),
        blob_file("rocksdb/counts/000012.sst", b"table"),
        blob_file("rocksdb/counts/EMPTY"),
        blob_file("rocksdb/counts/Readme"),
        blob_file("rocksdb/counts/README"),
        blob_file("rocksdb/counts/odd \u200e\u3000;$@"),
        inline_file("counts.position", b"beside"),
    )
    assert repository.manifests.load(repository.manifests.put(manifest)) == manifest


def test_one_manifest_has_one_id(repository: Repository) -> None:
    description = msgspec.structs.replace(describe(), tags={"b": "1", "a": "2"})
    turned = msgspec.structs.replace(describe(), tags={"a": "2", "b": "1"})
    first = repository.manifests.put(Manifest(format=1, description=description, files=()))
    assert repository.manifests.put(Manifest(format=1, description=turned, files=())) == first


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "./a", ""),
        *("a\x00b", "a\x08b", "a\nb", "a\x7fb", "a\x85b"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_on_both_sides_g86(
    repository: Repository, name: str
) -> None:
    manifest = manifest_of(blob_file(name))
    with pytest.raises(UnsafePathError):
        repository.manifests.put(manifest)
    with pytest.raises(UnsafePathError):
        repository.manifests.load(store_unchecked(repository, manifest))


@pytest.mark.parametrize("folder", ["../other", "/", "a/../b"])
def test_folders_of_the_description_are_names_too(repository: Repository, folder: str) -> None:
    for changes in ({"root": folder}, {"databases": (folder,)}):
        description = msgspec.structs.replace(describe(), **changes)
        manifest = Manifest(format=FORMAT, description=description, files=())
        with pytest.raises(UnsafePathError):
            repository.manifests.load(store_unchecked(repository, manifest))


@pytest.mark.parametrize(
    "files",
    [
        (blob_file("a"), blob_file("a")),
        (blob_file("a"), inline_file("a/b", b"x")),
        (msgspec.structs.replace(blob_file("a"), blob=None),),
        (msgspec.structs.replace(blob_file("a"), inline=b""),),
        (msgspec.structs.replace(blob_file("a"), size=-1),),
        (msgspec.structs.replace(blob_file("a"), mode=0o4755),),
        (msgspec.structs.replace(blob_file("a"), sha256="../../x", blob="../../x"),),
        (msgspec.structs.replace(blob_file("a"), blob=f"{EMPTY}.../x"),),
        (msgspec.structs.replace(blob_file("a"), blob="0" * 64),),
        (msgspec.structs.replace(inline_file("a", b"x"), size=2),),
        (msgspec.structs.replace(inline_file("a", b"x"), inline=b"y"),),
    ],
)
def test_entries_that_contradict_themselves_are_damage(
    repository: Repository, files: tuple[FileEntry, ...]
) -> None:
    with pytest.raises(ManifestInvalidError):
        repository.manifests.load(store_unchecked(repository, manifest_of(*files)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b'{"format":1',
        b'{"format":"1"}',
        b"\xff",
        b'{"format":1,"x":' + b"[" * 9999,
        b'{"format":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_json_that_nobody_wrote_is_damage(repository: Repository, body: bytes) -> None:
    with pytest.raises(ManifestInvalidError):
        repository.manifests.load(store_raw(repository, body))


def test_fields_of_a_later_minor_version_are_passed_over(repository: Repository) -> None:
    manifest = manifest_of(blob_file("a"))
    body = msgspec.json.decode(encoding.encode(manifest))
    body["invented_later"] = {"deep": [1]}
    body["files"][0]["also"] = 1
    assert repository.manifests.load(store_raw(repository, msgspec.json.encode(body))) == manifest


def test_a_newer_format_is_refused_although_it_looks_alike(repository: Repository) -> None:
    with pytest.raises(FormatUnsupportedError):
        repository.manifests.load(
            store_unchecked(repository, msgspec.structs.replace(manifest_of(), format=2))
        )


def test_bytes_that_do_not_hash_to_the_id_are_damage(repository: Repository) -> None:
    snapshot_id = repository.manifests.put(manifest_of(blob_file("a")))
    other = encoding.encode(manifest_of(blob_file("b")))
    repository.storage.put(keys.manifest(snapshot_id), zstandard.compress(other))
    with pytest.raises(ManifestInvalidError, match="hash"):
        repository.manifests.load(snapshot_id)


@pytest.mark.parametrize("stored", [b"", b"not zstd at all", zstandard.compress(b"x" * 999)[:-3]])
def test_a_cut_or_foreign_object_is_damage(repository: Repository, stored: bytes) -> None:
    snapshot_id = repository.manifests.put(manifest_of())
    repository.storage.put(keys.manifest(snapshot_id), stored)
    with pytest.raises(ManifestInvalidError):
        repository.manifests.load(snapshot_id)


def test_a_missing_manifest_is_damage(repository: Repository) -> None:
    with pytest.raises(ManifestInvalidError, match="missing"):
        repository.manifests.load("0" * 64)


def test_a_small_object_that_expands_without_end_is_cut_off(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "MAX_BYTES", 1 << 20)
    bomb = zstandard.ZstdCompressor(level=3).compress(b" " * (64 << 20))
    assert len(bomb) < 1 << 14
    repository.storage.put(keys.manifest("0" * 64), bomb)
    with pytest.raises(ManifestInvalidError, match="larger"):
        repository.manifests.load("0" * 64)


def test_a_name_that_is_not_utf_8_is_refused_at_snapshot_time(repository: Repository) -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    with pytest.raises(UnsafePathError):
        repository.manifests.put(manifest_of(blob_file(name)))
    tagged = msgspec.structs.replace(describe(), tags={"owner": name})
    with pytest.raises(UnsafePathError):
        repository.manifests.put(Manifest(format=FORMAT, description=tagged, files=()))

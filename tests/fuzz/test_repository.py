"""Manifests, catalog entries, markers, marks and leases are data of others."""

import hashlib
import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from snapstore.errors import (
    IntegrityError,
    NotFoundError,
    RefusedError,
    SnapstoreError,
)
from snapstore.model.snapshot import FileEntry, Manifest
from snapstore.operations.repair import RepairOptions, propose_repair
from snapstore.operations.verify_repository import verify_repository
from snapstore.repository import Leases, Repository, encoding, keys
from snapstore.repository.catalog import listing_of
from snapstore.storages.local import LocalStorage
from tests.fuzz.mutations import changed, examples, json_values
from tests.support.prune_lab import PruneLab
from tests.support.repository import NOON, describe, make_repository, publish

pytestmark = pytest.mark.slow

FILES = (
    FileEntry(name="a.sst", size=3, mode=0o644, sha256="a" * 64, blob="a" * 64),
    FileEntry(
        name="CURRENT",
        size=1,
        mode=0o644,
        sha256=hashlib.sha256(b"x").hexdigest(),
        inline=b"x",
    ),
)
MANIFEST = Manifest(format=1, description=describe(), files=FILES)
OURS = (IntegrityError, RefusedError)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """One repository for all examples, which write over one another."""
    return make_repository(tmp_path_factory.mktemp("fuzz") / "repository")


@pytest.fixture
def fresh(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


def spelled(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def put_manifest(target: Repository, body: bytes) -> str:
    snapshot_id = hashlib.sha256(body).hexdigest()
    stored = zstandard.ZstdCompressor().compress(body)
    target.storage.put(keys.manifest(snapshot_id), stored)
    return snapshot_id


def load(target: Repository, body: bytes) -> Manifest | None:
    """Load a manifest whose hash is right, whatever is in it."""
    try:
        return target.manifests.load(put_manifest(target, body))
    except OURS:
        return None


def require_usable(manifest: Manifest) -> None:
    """What was believed can be worked with: names, sizes, times and keys."""
    for file in manifest.files:
        assert not file.name.startswith("/")
        assert ".." not in file.name.split("/")
        assert file.size >= 0
        assert 0 <= file.mode <= 0o777
    assert manifest.description.captured_at - NOON < timedelta.max
    try:
        listed = listing_of(manifest.description, "f" * 64)
    except RefusedError:
        return
    assert keys.parse_entry(keys.entry(listed)) == listed


@given(changed(MANIFEST))
@examples(400)
def test_manifests_that_are_almost_right(target: Repository, document: Any) -> None:
    manifest = load(target, spelled(document))
    if manifest is not None:
        require_usable(manifest)


@given(st.one_of(st.binary(max_size=300), json_values.map(spelled)))
@examples(100)
def test_manifests_that_are_anything(target: Repository, body: bytes) -> None:
    assert load(target, body) is None


@given(st.binary(max_size=300))
@examples(100)
def test_stored_manifests_that_are_anything(target: Repository, stored: bytes) -> None:
    target.storage.put(keys.manifest("f" * 64), stored)
    with pytest.raises(IntegrityError):
        target.manifests.load("f" * 64)


@given(st.integers(0, 200), st.integers(0, 7))
@examples(100)
def test_manifests_with_a_bit_that_fell_over(target: Repository, position: int, bit: int) -> None:
    snapshot_id = target.manifests.put(MANIFEST)
    key = keys.manifest(snapshot_id)
    stored = bytearray(target.storage.get(key, limit_bytes=100_000))
    stored[position % len(stored)] ^= 1 << bit
    target.storage.put(key, bytes(stored))
    try:
        assert target.manifests.load(snapshot_id) == MANIFEST
    except IntegrityError:
        return
    finally:
        target.storage.delete([key])


@given(changed(MANIFEST.description), json_values)
@examples(200)
def test_catalog_entries_that_are_almost_right(
    target: Repository, description: Any, size: object
) -> None:
    target.storage.delete([stat.key for stat in target.storage.list(keys.CATALOG)])
    listed = publish(target, describe(), FILES)
    entry = {
        "format": 1,
        "id": listed.id,
        "description": description,
        "files": 2,
        "size_bytes": size,
        "new_files": 0,
        "new_bytes": 0,
    }
    target.storage.put(keys.entry(listed), spelled(entry))
    try:
        assert target.catalog.load(listed).description.store == listed.store
    except OURS:
        return


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=100))
@examples(100)
def test_keys_that_are_anything(application: str, store: str, order: str) -> None:
    for key in (application, f"catalog/{application}/0_1/{store}/{order}", f"catalog/{order}"):
        for parse in (keys.parse_entry, keys.parse_blob, keys.parse_condemned):
            with pytest.raises(ValueError, match="not "):
                parse(key)


@given(
    changed(
        {
            "format": 1,
            "id": "a" * 32,
            "created_at": "2026-05-04T12:00:00Z",
            "uploads": "read_back",
            "longest_run_s": 100,
        }
    )
)
@examples(100)
def test_markers_that_are_almost_right(document: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = LocalStorage(Path(folder, "repository").as_uri())
        storage.put(keys.MARKER, spelled(document))
        try:
            opened = Repository.open(storage)
        except (IntegrityError, NotFoundError):
            return
        assert opened.marker.longest_run > timedelta(0)
        assert opened.marker.created_at - NOON < timedelta.max


@given(json_values, json_values, st.binary(max_size=60))
@examples(60)
def test_a_repository_full_of_nonsense_can_be_looked_at(
    one: object, two: object, three: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = PruneLab(Path(folder) / "repository")
        listed = lab.save(100, "a")
        for key in (
            "swept/20260504T120000-x-0000.json",
            "leases/upkeep/00000000000000000001",
            "pins/nonsense",
            "removed/nonsense",
            "condemned/nonsense",
            "blobs/nonsense",
            keys.manifest("e" * 64),
            keys.entry(listed).replace("100-", "101-"),
        ):
            lab.storage.put(key, three if "0000" in key else spelled(one))
        put_manifest(lab.repository, spelled(two))
        for look in (
            lambda: verify_repository(lab.repository, clock=lab.clock),
            lambda: lab.plan(),
            lambda: propose_repair(
                lab.repository,
                RepairOptions(),
                clock=lab.clock,
                listener=lab.events.append,
            ),
            lambda: lab.prune(),
        ):
            try:
                look()
            except SnapstoreError:
                continue


def test_a_bomb_expands_to_no_more_than_a_manifest_may_have(fresh: Repository) -> None:
    bomb = zstandard.ZstdCompressor(level=19).compress(b"\0" * (300 << 20))
    assert len(bomb) < 100_000
    fresh.storage.put(keys.manifest("d" * 64), bomb)
    with pytest.raises(IntegrityError, match="larger than any manifest"):
        fresh.manifests.load("d" * 64)


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_json_that_is_deep_is_damage(fresh: Repository, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    bodies = (
        deep,
        b'{"format":1,"description":' + deep + b',"files":[]}',
        b'{"format":1,"unknown":' + deep + b"}",
    )
    for body in bodies:
        assert load(fresh, body) is None
    listed = publish(fresh, describe(), FILES)
    fresh.storage.put(keys.entry(listed), bodies[1])
    with pytest.raises(IntegrityError):
        fresh.catalog.load(listed)


def test_absurd_sizes_are_refused_before_anything_is_made_of_them(fresh: Repository) -> None:
    fresh.storage.put(keys.manifest("d" * 64), b"\0" * (65 << 20))
    with pytest.raises(IntegrityError, match="larger than any object of its kind"):
        fresh.manifests.load("d" * 64)
    huge = FileEntry(name="x", size=2**62, mode=0o644, sha256="a" * 64, blob="a" * 64)
    body = encoding.encode(Manifest(format=1, description=describe(), files=(huge,)))
    manifest = load(fresh, body)
    assert manifest is not None
    listed = publish(fresh, describe(), manifest.files)
    report = verify_repository(fresh, clock=lambda: NOON)
    assert [each.listed for each in report.found.quarantine] == [listed]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("captured_at", "2026-05-04T12:00:00"),
        ("captured_at", 1),
        (
            "positions",
            [{"position": {"changelog": {"topic": "t", "partition": 0}, "applied_offset": 10**30}}],
        ),
        ("root", "../../etc"),
        ("databases", ["/etc"]),
    ],
)
def test_a_value_that_cannot_be_worked_with_is_damage(
    fresh: Repository, field: str, value: object
) -> None:
    document = msgspec.to_builtins(MANIFEST)
    document["description"][field] = value
    assert load(fresh, spelled(document)) is None


@pytest.mark.parametrize("twice", ["files", "format", "description"])
def test_a_field_that_is_there_twice_does_not_smuggle_anything_in(
    fresh: Repository, twice: str
) -> None:
    good = encoding.encode(MANIFEST)
    evil = b'"files":[{"mode":420,"name":"../x","sha256":"%s","size":1,"blob":"%s"}],' % (
        b"a" * 64,
        b"a" * 64,
    )
    body = good.replace(b'"files":', evil + b'"files":') if twice == "files" else good
    body = body.replace(b"{", b'{"format":1,', 1) if twice == "format" else body
    manifest = load(fresh, body)
    if manifest is not None:
        assert {file.name for file in manifest.files} == {"a.sst", "CURRENT"}


def test_a_manifest_that_names_a_file_twice_or_in_another_case_is_refused(
    fresh: Repository,
) -> None:
    for names in (("a.sst", "a.sst"), ("a", "a/b")):
        files = tuple(
            FileEntry(name=name, size=1, mode=0o644, sha256="a" * 64, blob="a" * 64)
            for name in names
        )
        body = encoding.encode(Manifest(format=1, description=describe(), files=files))
        assert load(fresh, body) is None


LEASE = {"format": 1, "holder": "x", "taken_at": "2026-05-04T12:00:00Z", "ttl_s": 600}


@given(changed(LEASE))
@example({**LEASE, "ttl_s": -266_014_726_614_049_193_984})
@example({**LEASE, "ttl_s": 1e300})
@examples(100)
def test_leases_that_are_almost_right(target: Repository, document: Any) -> None:
    target.storage.put("leases/upkeep/00000000000000000001", spelled(document))
    leases = Leases(target.storage, "upkeep", holder="me", clock=lambda: NOON)
    try:
        with leases.held():
            return
    except SnapstoreError:
        return

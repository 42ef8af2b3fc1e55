"""Manifests that no capture wrote: `verify` and `restore` refuse the same ones."""

import hashlib
from pathlib import Path

import msgspec
import pytest
import zstandard

from snapstore import client
from snapstore.config import Config
from snapstore.errors import SnapstoreError
from snapstore.model.identity import ChangelogPartition
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import FORMAT, Description, FileEntry, Manifest, Position, Snapshot
from snapstore.model.store import ChangelogPosition
from snapstore.operations.verify import VerifyOptions, verify
from snapstore.repository import encoding, keys
from tests.support.repository import describe
from tests.support.restore_lab import RestoreLab

BODY = b"MANIFEST-000005\n"
SHA256 = hashlib.sha256(BODY).hexdigest()


def inline(name: str) -> FileEntry:
    return FileEntry(name=name, size=len(BODY), mode=0o644, sha256=SHA256, inline=BODY)


def publish_unchecked(lab: RestoreLab, description: Description, *names: str) -> ListedSnapshot:
    """Put a manifest and its entry as an attacker who can write could."""
    manifest = Manifest(
        format=FORMAT, description=description, files=tuple(inline(name) for name in names)
    )
    body = encoding.encode(manifest)
    snapshot_id = hashlib.sha256(body).hexdigest()
    lab.storage.put(keys.manifest(snapshot_id), zstandard.compress(body))
    return lab.repository.catalog.publish(
        Snapshot(
            format=FORMAT,
            id=snapshot_id,
            description=description,
            files=len(names),
            size_bytes=len(names) * len(BODY),
            new_files=0,
            new_bytes=0,
        )
    )


def with_topic(topic: str) -> Description:
    position = ChangelogPosition(ChangelogPartition(topic, 1), 100)
    return msgspec.structs.replace(describe(), positions=(Position(position=position),))


@pytest.mark.parametrize(
    ("description", "names"),
    [
        (describe(), ["rocksdb/counts/" + "/".join(["d"] * 1900) + "/x"]),
        (describe(), ["rocksdb/other/CURRENT"]),
        (describe(), ["rocksdb/counts/" + "x" * 256]),
        (describe(), ["rocksdb/counts/a\x00b"]),
        (describe(), ["rocksdb/counts/.snapstore/x"]),
        (describe(), ["rocksdb/counts/a\\b"]),
        (describe(), ["rocksdb/counts/a", "rocksdb/counts/a/b"]),
        (with_topic("orders\nchangelog"), ["rocksdb/counts/CURRENT"]),
        (msgspec.structs.replace(describe(), layout="../x"), ["rocksdb/counts/CURRENT"]),
    ],
)
def test_h26_verify_and_restore_refuse_what_no_store_has(
    tmp_path: Path, description: Description, names: list[str]
) -> None:
    lab = RestoreLab(tmp_path)
    listed = publish_unchecked(lab, description, *names)
    report = verify(
        lab.repository,
        [listed],
        backends=lab.backends,
        listener=lab.events.append,
        options=VerifyOptions(),
    )
    assert [damage.snapshots for damage in report.damage] == [(listed.id,)]
    with pytest.raises(SnapstoreError):
        lab.restore(tmp_path / "target")
    assert not [*(tmp_path / "target").rglob("*x*")]


@pytest.mark.parametrize("field", ["layout", "backend"])
def test_h26_verify_names_a_plugin_that_a_restore_would_lack(tmp_path: Path, field: str) -> None:
    lab = RestoreLab(tmp_path)
    description = msgspec.structs.replace(describe(), **{field: "invented"})
    listed = publish_unchecked(lab, description, "rocksdb/counts/CURRENT")
    url = (tmp_path / "repository").as_uri()
    with client.open(url, config=Config()) as repository:
        (damage,) = repository.verify().damage
    assert (damage.kind, damage.snapshots) == ("unopenable", (listed.id,))
    assert f"no {field} is called 'invented'" in damage.reason


def test_h25_a_bomb_is_told_before_its_files_are_built(tmp_path: Path) -> None:
    """Were its entries decoded, the message would be about their missing fields."""
    lab = RestoreLab(tmp_path)
    for filler in (b"{}", b'""', b"0"):
        body = b'{"format":1,"files":[' + b",".join([filler] * 2_500_000) + b"]}"
        snapshot_id = hashlib.sha256(body).hexdigest()
        lab.storage.put(keys.manifest(snapshot_id), zstandard.compress(body))
        with pytest.raises(SnapstoreError, match="larger than any manifest may be"):
            lab.repository.manifests.load(snapshot_id)

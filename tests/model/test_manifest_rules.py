"""What a manifest may say, sentence by sentence."""

import hashlib

import msgspec
import pytest

from snapstore.errors import ManifestInvalidError, SnapstoreError, UnsafePathError
from snapstore.model import manifest_rules
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.manifest_rules import check_manifest, fault_of_name
from snapstore.model.snapshot import FORMAT, Description, FileEntry, Manifest, Position
from snapstore.model.store import ChangelogPosition
from tests.support.repository import COUNTS, describe

ROOT = "rocksdb/counts"


def entry(name: str) -> FileEntry:
    sha256 = hashlib.sha256(b"x").hexdigest()
    return FileEntry(name=name, size=1, mode=0o644, sha256=sha256, blob=sha256)


def manifest(*names: str, **changes: object) -> Manifest:
    description = msgspec.structs.replace(describe(), **changes)
    return Manifest(
        format=FORMAT, description=description, files=tuple(entry(name) for name in names)
    )


def at(topic: str, partition: int = 0, offset: int = 1) -> tuple[Position, ...]:
    return (Position(position=ChangelogPosition(ChangelogPartition(topic, partition), offset)),)


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/etc/x",
        "a/../../x",
        "..\\x",
        "..",
        ".",
        "",
        "a//b",
        "a/",
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "a/\udc80",
        "x" * 256,
        "ö" * 128,
        "a/.snapstore/b",
        "/".join(["long"] * 1000),
        "/".join(["a"] * 65),
    ],
)
def test_g96_h26_a_name_that_no_file_of_a_store_has_is_refused_and_shown(name: str) -> None:
    assert fault_of_name(name) is not None
    with pytest.raises(UnsafePathError) as refused:
        check_manifest(manifest(f"{ROOT}/CURRENT", name))
    shown = refused.value.facts["names"]
    assert isinstance(shown, list)
    assert len(shown) == 1
    assert repr(name)[:100] in shown[0]


@pytest.mark.parametrize(
    "name",
    [
        "CURRENT",
        f"{ROOT}/000010.sst",
        "wörter/x.1",
        ".checkpoint_a",
        "a..b/..c",
        "x" * 255,
        "/".join(["a"] * 64),
    ],
)
def test_ordinary_names_are_accepted(name: str) -> None:
    assert fault_of_name(name) is None


@pytest.mark.parametrize("store", ["..", "a/b", ""])
def test_g96_a_store_name_that_leads_elsewhere_is_refused(store: str) -> None:
    with pytest.raises(UnsafePathError):
        check_manifest(manifest(store=StoreId("orders", "0_1", store)))


@pytest.mark.parametrize(
    "bad",
    [
        manifest(f"{ROOT}/a", f"{ROOT}/a/b"),
        manifest(f"{ROOT}/a", f"{ROOT}/a/b/c/d"),
        manifest(f"{ROOT}/a", f"{ROOT}/a"),
        manifest("rocksdb/other/CURRENT"),
        manifest("rocksdb/counts2/CURRENT"),
        manifest("elsewhere/CURRENT"),
        manifest(databases=("rocksdb/other",)),
    ],
)
def test_h26_files_that_collide_or_lie_in_the_folder_of_another_store_are_refused(
    bad: Manifest,
) -> None:
    with pytest.raises(ManifestInvalidError):
        check_manifest(bad)


def test_files_of_the_store_and_those_beside_its_folder_are_accepted() -> None:
    check_manifest(manifest(f"{ROOT}/CURRENT", f"{ROOT}/deep/x", "counts.position", "rocksdb/side"))
    check_manifest(manifest("CURRENT", "deep/x", root=".", databases=(".",)))


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("a topic with a line end", {"positions": at("orders\n-changelog")}),
        ("a topic that is a folder", {"positions": at("..")}),
        ("a topic without a name", {"positions": at("")}),
        ("a topic that is too long", {"positions": at("x" * 250)}),
        ("a partition below 0", {"positions": at("topic", -1)}),
        ("a partition beyond what Kafka counts", {"positions": at("topic", 2**31)}),
        ("an offset beyond what Kafka counts", {"positions": at("topic", 0, 2**63)}),
        ("one partition twice", {"positions": at("topic") * 2}),
        ("a layout that is a path", {"layout": "../x"}),
        ("a backend without a name", {"backend": ""}),
    ],
)
def test_h26_a_description_that_cannot_be_is_damage(
    reason: str, changes: dict[str, object]
) -> None:
    with pytest.raises(ManifestInvalidError):
        check_manifest(manifest(f"{ROOT}/CURRENT", **changes))
    assert reason


def test_h25_more_files_than_a_store_can_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_rules, "MAX_FILES", 3)
    check_manifest(manifest(*(f"{ROOT}/{number}" for number in range(3))))
    with pytest.raises(ManifestInvalidError, match="4 files, and 3 is the limit"):
        check_manifest(manifest(*(f"{ROOT}/{number}" for number in range(4))))


def test_h25_many_bad_names_are_shown_in_part() -> None:
    with pytest.raises(UnsafePathError) as refused:
        check_manifest(manifest(*(f"../{number}" for number in range(1000))))
    shown = refused.value.facts["names"]
    assert isinstance(shown, list)
    assert (len(shown), shown[-1]) == (11, "and more")


def test_every_faulty_manifest_is_refused_with_one_of_ours() -> None:
    description: Description = describe(COUNTS)
    for file in (
        msgspec.structs.replace(entry(f"{ROOT}/a"), mode=0o4755),
        msgspec.structs.replace(entry(f"{ROOT}/a"), blob=None),
        msgspec.structs.replace(entry(f"{ROOT}/a"), blob="f" * 64),
    ):
        with pytest.raises(SnapstoreError):
            check_manifest(Manifest(format=FORMAT, description=description, files=(file,)))

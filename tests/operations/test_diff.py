"""What two snapshots share, by content and not by name."""

import hashlib
from pathlib import Path

from snapstore.model.snapshot import FORMAT, FileEntry, Manifest
from snapstore.operations.diff import diff
from tests.support.repository import describe
from tests.support.restore_lab import RestoreLab
from tests.support.streams_store import Pairs, make_key_value, some_pairs


def manifest(**files: bytes) -> Manifest:
    return Manifest(
        format=FORMAT,
        description=describe(),
        files=tuple(
            FileEntry(
                name=name,
                size=len(content),
                mode=0o644,
                sha256=hashlib.sha256(content).hexdigest(),
                inline=content,
            )
            for name, content in files.items()
        ),
    )


def test_files_are_shared_added_gone_or_changed() -> None:
    old = manifest(same=b"12345", gone=b"123", changed=b"1")
    new = manifest(same=b"12345", added=b"1234567", changed=b"22")

    found = diff(old, new)

    assert [file.name for file in found.shared] == ["same"]
    assert [(file.name, file.size_bytes) for file in found.added] == [("added", 7)]
    assert [(file.name, file.size_bytes) for file in found.gone] == [("gone", 3)]
    assert [(file.name, file.old_bytes, file.new_bytes) for file in found.changed] == [
        ("changed", 1, 2)
    ]
    assert (found.shared_bytes, found.added_bytes, found.gone_bytes) == (5, 9, 4)


def test_the_same_name_with_other_bytes_is_not_shared() -> None:
    found = diff(manifest(table=b"aaaa"), manifest(table=b"bbbb"))

    assert found.shared == ()
    assert (found.shared_bytes, found.added_bytes) == (0, 4)


def test_the_same_content_under_another_name_costs_nothing_and_says_where_it_was() -> None:
    found = diff(manifest(before=b"content"), manifest(after=b"content"))

    (added,) = found.added
    (gone,) = found.gone
    assert (added.name, added.elsewhere) == ("after", "before")
    assert (gone.name, gone.elsewhere) == ("before", "after")
    assert (found.shared_bytes, found.added_bytes, found.gone_bytes) == (7, 0, 0)


def test_a_snapshot_shares_everything_with_itself() -> None:
    one = manifest(a=b"1", b=b"22")

    found = diff(one, one)

    assert (found.added, found.gone, found.changed) == ((), (), ())
    assert found.shared_bytes == 3


def test_two_snapshots_of_a_growing_store_share_its_tables(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    source = tmp_path / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(500), applied_offset=600))
    lab.save(source)
    more = Pairs(pairs=some_pairs(9, start=500), applied_offset=900)
    make_key_value(source, "0_1", "counts", more)
    lab.save(source)
    new, old = (lab.repository.manifests.load(item.id) for item in lab.listed())

    found = diff(old, new)

    tables = {entry.name for entry in old.files if entry.name.endswith(".sst")}
    assert tables <= {file.name for file in found.shared}
    assert any(file.name.endswith(".sst") for file in found.added)
    assert found.added_bytes < found.shared_bytes

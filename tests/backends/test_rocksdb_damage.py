"""Blocks that cannot be read: found by reading to the end, never taken for the end."""

from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import SourceDamagedError, StoreNotFoundError
from tests.support.rocksdb import locate, make_database

ROOT = "rocksdb/counts"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store whose largest table has a few wrong bytes in its first block."""
    folder = make_database(tmp_path / ROOT, 3000)
    table = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(table.read_bytes())
    content[200:208] = b"\xff" * 8
    table.write_bytes(content)
    return tmp_path


def test_a_scan_names_the_database_and_family_with_a_broken_block(damaged: Path) -> None:
    with (
        RocksDBBackend().open_view(damaged, ROOT) as view,
        pytest.raises(SourceDamagedError, match="default") as caught,
    ):
        list(view.scan(ROOT, "default"))
    assert caught.value.facts["database"] == ROOT
    assert caught.value.facts["family"] == "default"
    assert str(caught.value.facts["file"]).endswith(".sst")
    assert "/tmp" not in str(caught.value.facts["reason"])


def test_entries_of_a_broken_family_are_never_returned_in_part(damaged: Path) -> None:
    with (
        RocksDBBackend().capture(locate(damaged, ROOT)) as capture,
        pytest.raises(SourceDamagedError),
    ):
        capture.view.entries(ROOT, "default")


def test_a_broken_footer_is_found_when_the_capture_begins(tmp_path: Path) -> None:
    folder = make_database(tmp_path / ROOT, 3000)
    table = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    content = table.read_bytes()
    table.write_bytes(content[:-20] + b"\0" * 20)
    with (
        pytest.raises(SourceDamagedError, match=table.name),
        RocksDBBackend().capture(locate(tmp_path, ROOT)),
    ):
        pass


def test_a_broken_manifest_is_found_when_the_capture_begins(tmp_path: Path) -> None:
    folder = make_database(tmp_path / ROOT, 3000)
    (manifest,) = folder.glob("MANIFEST-*")
    content = bytearray(manifest.read_bytes())
    content[60:64] = b"\xff" * 4
    manifest.write_bytes(content)
    with (
        pytest.raises(SourceDamagedError, match=manifest.name),
        RocksDBBackend().capture(locate(tmp_path, ROOT)),
    ):
        pass


def test_a_database_or_family_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    make_database(tmp_path / ROOT, 10)
    with RocksDBBackend().open_view(tmp_path, ROOT) as view:
        with pytest.raises(StoreNotFoundError, match="no database"):
            view.families("rocksdb/other")
        with pytest.raises(StoreNotFoundError, match="no column family"):
            view.entries(ROOT, "other")


def test_h18_a_missing_manifest_is_told_with_what_current_names_and_what_is_there(
    tmp_path: Path,
) -> None:
    folder = make_database(tmp_path / ROOT, 100)
    (manifest,) = folder.glob("MANIFEST-*")
    (folder / "CURRENT").write_text("MANIFEST-009999\n")
    told = f"it is missing: CURRENT names MANIFEST-009999, and there is {manifest.name}"
    backend = RocksDBBackend()
    with pytest.raises(SourceDamagedError, match=told), backend.open_view(tmp_path, ROOT):
        pass
    with (
        pytest.raises(SourceDamagedError, match=told),
        backend.capture(locate(tmp_path, ROOT)),
    ):
        pass
    manifest.unlink()
    with (
        pytest.raises(SourceDamagedError, match="CURRENT names MANIFEST-009999, and there is none"),
        backend.open_view(tmp_path, ROOT),
    ):
        pass

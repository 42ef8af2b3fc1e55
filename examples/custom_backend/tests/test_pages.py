"""A small change is a small upload, and ranges become the same database again."""

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from snapstore_sqlite import pages
from snapstore_sqlite.backend import SQLiteBackend, SQLiteOptions
from snapstore_sqlite.layout import GENERATION
from snapstore_sqlite.store import DATABASE, ENTRIES, OFFSETS, Store

from snapstore.errors import (
    CaptureError,
    PluginError,
    SourceDamagedError,
    StoreNotFoundError,
    UnsafePathError,
)
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.registry import Registry
from snapstore.testing.backend_contract import materialise, read_whole

RANGE = 16 << 10


@pytest.fixture
def backend() -> SQLiteBackend:
    return SQLiteBackend(SQLiteOptions(range_bytes=RANGE))


@pytest.fixture
def location(tmp_path: Path) -> StoreLocation:
    """A store of about 2 MB."""
    with closing(Store(tmp_path / "source" / "counts")) as store:
        store.apply({b"key-%05d" % number: bytes(200) for number in range(8000)}, "in:0", 7999)
    return StoreLocation(
        store=StoreId("shop", "0", "counts"),
        layout="sqlite",
        backend="sqlite",
        store_type="key-value",
        generation=GENERATION,
        task_dir=tmp_path / "source",
        root="counts",
    )


def hashes(backend: SQLiteBackend, location: StoreLocation) -> dict[str, int]:
    with backend.capture(location) as capture:
        return {
            hashlib.sha256(read_whole(file)).hexdigest(): file.size
            for file in capture.files
            if not file.inline
        }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def copied(backend: SQLiteBackend, location: StoreLocation, target: Path) -> Path:
    with backend.capture(location) as capture:
        materialise(capture, target)
    return target / location.root


def test_changing_one_entry_of_a_large_store_changes_a_few_ranges(
    backend: SQLiteBackend, location: StoreLocation
) -> None:
    before = hashes(backend, location)
    assert sum(before.values()) > 1_500_000
    with closing(Store(location.path)) as store:
        store.apply({b"key-04000": b"changed"}, "in:0", 8000)
    after = hashes(backend, location)
    changed = [size for sha256, size in after.items() if sha256 not in before]
    # The page of the entry, the page of the offset, and the first page of the file.
    assert 0 < sum(changed) <= 3 * RANGE


def test_a_store_that_did_not_change_is_cut_into_the_same_bytes(
    backend: SQLiteBackend, location: StoreLocation
) -> None:
    assert hashes(backend, location) == hashes(backend, location)


def test_installing_leaves_the_database_that_the_application_opens(
    backend: SQLiteBackend, location: StoreLocation, tmp_path: Path
) -> None:
    folder = copied(backend, location, tmp_path / "target")
    backend.install(tmp_path / "target", "counts")
    assert names(folder) == [DATABASE]
    with closing(Store(folder)) as store:
        assert store.get(b"key-07999") == bytes(200)
        assert store.applied("in:0") == 7999
        store.apply({b"key-07999": None}, "in:0", 8000)
    backend.install(tmp_path / "target", "counts")
    with closing(Store(folder)) as store:
        assert store.get(b"key-07999") is None


@pytest.mark.parametrize("left", ["plan and database", "ranges only"])
def test_an_interrupted_install_is_finished_by_the_next(
    backend: SQLiteBackend, location: StoreLocation, tmp_path: Path, left: str
) -> None:
    folder = copied(backend, location, tmp_path / "target")
    pages.join(folder, folder / DATABASE)
    if left == "ranges only":
        (folder / pages.PLAN).unlink()
    (folder / f"{DATABASE}.part").write_bytes(b"torn")
    backend.install(tmp_path / "target", "counts")
    assert DATABASE in names(folder)
    assert not (folder / pages.FOLDER).exists()
    with backend.open_view(tmp_path / "target", "counts") as view:
        assert len(view.entries("counts", ENTRIES)) == 8000


def test_a_range_that_is_missing_or_short_is_damage(
    backend: SQLiteBackend, location: StoreLocation, tmp_path: Path
) -> None:
    folder = copied(backend, location, tmp_path / "target")
    third = folder / pages.FOLDER / "00000003"
    content = third.read_bytes()
    third.write_bytes(content[:-1])
    with pytest.raises(SourceDamagedError, match="00000003 holds 16383 bytes instead of 16384"):
        backend.install(tmp_path / "target", "counts")
    third.unlink()
    with pytest.raises(SourceDamagedError, match="00000003 is missing"):
        backend.install(tmp_path / "target", "counts")
    assert not (folder / DATABASE).exists()
    third.write_bytes(content)
    backend.install(tmp_path / "target", "counts")
    assert names(folder) == [DATABASE]


def test_a_page_that_is_no_page_is_damage(backend: SQLiteBackend, location: StoreLocation) -> None:
    with (location.path / DATABASE).open("r+b") as file:
        file.seek(4096 * 50)
        file.write(bytes(range(256)) * 16)
    with pytest.raises(SourceDamagedError), backend.capture(location):
        pass


def test_a_database_without_a_log_is_refused(
    backend: SQLiteBackend, location: StoreLocation
) -> None:
    with closing(sqlite3.connect(location.path / DATABASE)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with pytest.raises(CaptureError, match="journal mode delete"), backend.capture(location):
        pass


def test_a_link_in_the_place_of_the_database_is_not_followed(
    backend: SQLiteBackend, location: StoreLocation, tmp_path: Path
) -> None:
    shutil.move(location.path / DATABASE, tmp_path / "elsewhere.db")
    (location.path / DATABASE).symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(CaptureError, match="is not a file"), backend.capture(location):
        pass


def test_a_writer_makes_a_store_that_the_application_goes_on_with(
    backend: SQLiteBackend, tmp_path: Path
) -> None:
    with backend.open_writer(tmp_path, "counts") as writer:
        assert writer.databases == ()
        with pytest.raises(StoreNotFoundError):
            writer.get("counts", ENTRIES, b"a")
        writer.create("counts", [ENTRIES, OFFSETS])
        writer.write("counts", {ENTRIES: [(b"a", b"1"), (b"ab", b"2"), (b"b", b"3")]})
        writer.write("counts", {OFFSETS: [(b"in:0", b"7")], ENTRIES: [(b"b", None)]})
        assert list(writer.scan_from("counts", ENTRIES, b"aa")) == [(b"ab", b"2")]
        writer.write("counts", {ENTRIES: [(b"a", b"4")]}, emptied={ENTRIES: [b"a"]})
        with pytest.raises(StoreNotFoundError):
            writer.write("counts", {ENTRIES: [(b"a", b"5")], "elsewhere": [(b"a", b"5")]})
        writer.flush()
    assert names(tmp_path / "counts") == [DATABASE]
    with closing(Store(tmp_path / "counts")) as store:
        assert store.get(b"a") == b"4"
        assert store.get(b"ab") is None
        assert store.applied("in:0") == 7


@pytest.mark.parametrize("root", ["..", "/etc", "a//b"])
def test_nothing_is_installed_outside_the_task(
    backend: SQLiteBackend, tmp_path: Path, root: str
) -> None:
    with pytest.raises(UnsafePathError):
        backend.install(tmp_path, root)


def test_snapstore_finds_the_plugins_once_the_package_is_installed() -> None:
    registry = Registry()
    made = registry.backend("sqlite", {"range_bytes": 65536})
    assert isinstance(made, SQLiteBackend)
    with pytest.raises(PluginError) as caught:
        registry.backend("sqlit", {})
    assert caught.value.hint == "did you mean sqlite?"

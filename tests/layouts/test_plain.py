"""A plain folder is one store, and its side file says which offset it holds."""

from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import (
    ConfigError,
    SnapstoreError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
)
from snapstore.layouts.plain import PlainLayout, PlainOptions
from snapstore.model.store import ChangelogPosition
from tests.support.state_dirs import make_database

SIDE_FILE = ".snapstore-position.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_database(tmp_path / "counts", {"default": {b"k": b"v"}})


def positions(
    folder: Path, options: PlainOptions, *, running: bool = False
) -> tuple[ChangelogPosition, ...]:
    layout = PlainLayout(options)
    (location,) = layout.discover(folder, "shop").locations
    noted = layout.noted_offsets(location)
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        return layout.positions(location, noted, view, running=running)


def test_the_folder_is_named_by_the_options_or_by_itself(folder: Path) -> None:
    (found,) = PlainLayout().discover(folder, "shop").locations
    assert str(found.store) == "shop/0/counts"
    options = PlainOptions(application="shop", task="7", store="sums", backend="files")
    (found,) = PlainLayout(options).discover(folder).locations
    assert (str(found.store), found.backend) == ("shop/7/sums", "files")


def test_an_application_must_be_given(folder: Path) -> None:
    with pytest.raises(ConfigError, match="application"):
        PlainLayout().discover(folder)


def test_a_missing_folder_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        PlainLayout().discover(tmp_path / "counts", "shop")
    (tmp_path / "counts").mkdir()
    assert PlainLayout().discover(tmp_path / "counts", "shop").locations == ()


def test_without_a_side_file_the_offset_is_unknown(folder: Path) -> None:
    with pytest.raises(UnknownOffsetError):
        positions(folder, PlainOptions())


def test_an_empty_list_is_a_store_without_changelog(folder: Path) -> None:
    (folder / SIDE_FILE).write_text('{"format": 1, "positions": []}')
    assert positions(folder, PlainOptions()) == ()


def test_a_configured_offset_is_that_of_a_folder_at_rest_only(folder: Path) -> None:
    options = PlainOptions(changelog="orders:3", applied_offset=41)
    (position,) = positions(folder, options)
    assert (str(position.changelog), position.applied_offset) == ("orders:3", 41)
    with pytest.raises(UnknownOffsetError):
        positions(folder, options, running=True)


@pytest.mark.parametrize(
    "options",
    [PlainOptions(applied_offset=41), PlainOptions(applied_offset=41, changelog="orders")],
)
def test_an_offset_needs_its_changelog(options: PlainOptions) -> None:
    with pytest.raises(ConfigError, match="changelog"):
        PlainLayout(options)


@pytest.mark.parametrize(
    ("why", "content"),
    [
        ("no JSON", "41"),
        ("cut off", '{"format": 1, "posit'),
        ("a newer format", '{"format": 2, "positions": []}'),
        ("a negative offset", '{"format": 1, "positions": [["orders", 3, -1]]}'),
        (
            "a misspelt field",
            '{"format": 1, "positions": [{"topic": "t", "partition": 0, "offset": 1}]}',
        ),
        ("no positions", '{"format": 1}'),
    ],
)
def test_a_side_file_that_cannot_be_read_is_named(folder: Path, why: str, content: str) -> None:
    (folder / SIDE_FILE).write_text(content)
    with pytest.raises(SourceDamagedError, match=SIDE_FILE) as caught:
        positions(folder, PlainOptions())
    assert isinstance(caught.value, SnapstoreError)

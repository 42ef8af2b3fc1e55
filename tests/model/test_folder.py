"""A folder that is held by a descriptor."""

import os
from pathlib import Path

import pytest

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder, shown


def test_no_name_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with Folder.open(tmp_path) as folder:
        for name in ("link", "link/inner"):
            with pytest.raises(UnsafePathError, match="link is a symbolic link"):
                folder.below(name)
    with pytest.raises(UnsafePathError, match="link is a symbolic link"):
        Folder.open(tmp_path / "link" / "inner")
    with Folder.reach(tmp_path / "link", tmp_path / "link" / "inner") as inner:
        assert inner.names() == []


def test_it_stays_the_same_folder_whatever_gets_its_name(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with Folder.open(tmp_path / "one") as one:
        (tmp_path / "one").rename(tmp_path / "two")
        (tmp_path / "one").mkdir()
        (one.here / "file").touch()
        assert shown(f"{one.here}/file") == str(tmp_path / "two" / "file")
    assert [each.name for each in (tmp_path / "two").iterdir()] == ["file"]


def test_folders_deeper_than_python_calls_functions_are_removed(tmp_path: Path) -> None:
    depth = 1100
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with Folder.open(tmp_path) as folder:
        assert sum(1 for _ in folder.walk("d")) == depth - 1
        folder.remove_tree("d")
        assert folder.names() == []

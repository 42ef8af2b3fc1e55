"""A check that dies of what it looks at ends itself, and not the test run."""

import mmap
import os
from pathlib import Path

import pytest

from snapstore.testing.backend_copies import CopyContract
from snapstore.testing.child import in_child

PAGE = mmap.PAGESIZE


def read_beyond_the_end(path: Path) -> None:
    """Do what an engine does that maps a file which was cut: read a page that is gone."""
    path.write_bytes(b"x" * 2 * PAGE)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 2 * PAGE) as mapped:
        os.truncate(path, 0)
        assert mapped[PAGE]


def test_h48_a_process_that_dies_of_a_mapped_file_fails_the_test_and_says_why(
    tmp_path: Path,
) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"SIGBUS.*compare the sizes"):
        in_child(lambda: read_beyond_the_end(tmp_path / "data.mdb"))


def test_h48_a_contract_of_mapped_files_looks_into_damaged_copies_in_a_child(
    tmp_path: Path,
) -> None:
    class Mapped(CopyContract):
        maps_files = True

    with pytest.raises(pytest.fail.Exception, match="SIGBUS"):
        Mapped()._look(lambda: read_beyond_the_end(tmp_path / "data.mdb"))


def test_what_a_check_in_a_child_finds_is_told() -> None:
    def fails() -> None:
        assert not "this is wrong"

    in_child(lambda: None)
    with pytest.raises(pytest.fail.Exception, match="this is wrong"):
        in_child(fails)

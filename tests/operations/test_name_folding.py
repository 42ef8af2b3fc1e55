"""Stores whose names differ in case or Unicode form only are never mixed."""

from pathlib import Path
from typing import Self

import pytest

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder
from snapstore.operations.name_folding import names_alike, require_apart
from tests.support.restore_lab import RestoreLab
from tests.support.streams_store import Pairs, make_key_value, some_pairs

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


class FoldingFolder(Folder):
    """On a file system that folds case, as far as making a folder shows it."""

    def make(self, name: str, mode: int = 0o700) -> tuple[Self, bool]:
        return super().make(name.casefold(), mode)


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        (["rocksdb/counts/CURRENT", "rocksdb/names/CURRENT"], []),
        (["rocksdb/Counts/CURRENT", "rocksdb/counts/CURRENT"], [["Counts", "counts"]]),
        (["Windows/a.1/CURRENT", "rocksdb/windows/CURRENT"], []),
        ([f"{COMPOSED}/a", f"{DECOMPOSED}/b"], [[DECOMPOSED, COMPOSED]]),
        (["stra\u00dfe/a", "STRASSE/a"], [["STRASSE", "stra\u00dfe"]]),
    ],
)
def test_names_of_one_folder_that_may_be_one_are_found(
    names: list[str], alike: list[list[str]]
) -> None:
    assert names_alike(names) == alike


def test_names_that_the_file_system_folds_are_refused_and_nothing_stays_h60(
    tmp_path: Path,
) -> None:
    with FoldingFolder.open(tmp_path) as own:
        require_apart(own, ["rocksdb/counts/CURRENT", "rocksdb/names/CURRENT"])
        with pytest.raises(UnsafePathError, match="takes the names 'Counts' and 'counts' for one"):
            require_apart(own, ["rocksdb/counts/CURRENT", "rocksdb/Counts/CURRENT"])
    assert not [*tmp_path.iterdir()]


def test_names_that_the_file_system_tells_apart_are_restored(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    for store, rows in (("counts", 10), ("Counts", 20), (COMPOSED, 30), (DECOMPOSED, 40)):
        content = Pairs(pairs=some_pairs(rows), applied_offset=99)
        make_key_value(tmp_path / "source", "0_1", store, content)
    lab.save(tmp_path / "source")

    assert len(lab.restore(tmp_path / "target").stores) == 4

    found = {path.parent.name for path in (tmp_path / "target").rglob("CURRENT")}
    assert found == {"counts", "Counts", COMPOSED, DECOMPOSED}

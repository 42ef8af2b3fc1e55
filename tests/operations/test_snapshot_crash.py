"""A snapshot run that is killed at any of its writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.model.store import ByteSource
from snapstore.operations.snapshot import SnapshotOptions
from snapstore.storages.local import LocalStorage
from tests.support.crash import kill_at, points_of
from tests.support.folder_store import write_store
from tests.support.snapshot_lab import SnapshotLab

WORK = "tests.operations.test_snapshot_crash:work"
FILES = {f"{name}.sst": name.encode() * 100_000 for name in "abcde"}
ONE_BY_ONE = SnapshotOptions(transfers=1)


class Reporting(LocalStorage):
    """Says when a write begins and when it is done, in the middle of a file too."""

    def __init__(self, url: str, reached: Callable[[str], None]) -> None:
        super().__init__(url)
        self._reached = reached

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        kind = key.partition("/")[0]
        self._reached(f"before {kind}")
        super().put(key, body, if_absent=if_absent)
        self._reached(f"after {kind}")

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        self._reached("before a blob")
        stored = super().put_file(key, InTheMiddle(source, self._reached), sha256=sha256)
        self._reached("after a blob")
        return stored


class InTheMiddle:
    """A source that says when it is read."""

    def __init__(self, source: ByteSource, reached: Callable[[str], None]) -> None:
        self._source = source
        self._reached = reached

    @property
    def size(self) -> int:
        return self._source.size

    def pread(self, length: int, position: int) -> bytes:
        self._reached("within a blob")
        return self._source.pread(length, position)


def work(reached: Callable[[str], None], folder: str) -> None:
    place = Path(folder)
    storage = Reporting((place / "repository").as_uri(), reached)
    SnapshotLab(place, storage=storage).save(place / "counts", ONE_BY_ONE)


def new_place(folder: Path) -> Path:
    """Return a folder with a store of which there is a snapshot of two files of five."""
    state = write_store(folder / "counts", dict(list(FILES.items())[:2]), 100)
    SnapshotLab(folder).save(state)
    write_store(state, FILES, 200)
    return folder


@pytest.mark.slow
def test_killed_at_any_write_it_leaves_whole_snapshots_and_the_next_run_succeeds_g39_g41_g52(
    tmp_path: Path,
) -> None:
    points = points_of(WORK, {"folder": str(new_place(tmp_path / "whole"))})
    assert [point for point, _ in points].count("before a blob") == 3
    assert {"before manifests", "after manifests", "before catalog", "after catalog"} <= {
        point for point, _ in points
    }
    for number, (point, occurrence) in enumerate(points):
        place = new_place(tmp_path / str(number))
        kill_at(WORK, {"folder": str(place)}, point, occurrence)
        lab = SnapshotLab(place)
        committed = (point, occurrence) == ("after catalog", 1)
        assert len(lab.contents()) == (2 if committed else 1), (point, occurrence)
        outcome = lab.save_one(place / "counts", ONE_BY_ONE)
        assert (outcome.status, outcome.same_content) == ("stored", committed)
        newest = lab.contents()[0]
        assert {name: newest[name] for name in FILES} == FILES
        assert len(lab.blobs()) == len(FILES)
        assert len(lab.repository.catalog.list_all().snapshots) == (3 if committed else 2)


@pytest.mark.parametrize("occurrence", [1, 3])
def test_killed_in_the_first_run_of_all_it_leaves_no_snapshot(
    tmp_path: Path, occurrence: int
) -> None:
    write_store(tmp_path / "counts", FILES, 100)
    SnapshotLab(tmp_path)
    kill_at(WORK, {"folder": str(tmp_path)}, "after a blob", occurrence)
    lab = SnapshotLab(tmp_path)
    assert lab.contents() == []
    assert len(lab.blobs()) == occurrence
    outcome = lab.save_one(tmp_path / "counts")
    assert (outcome.new_files, outcome.reused_files) == (5 - occurrence, occurrence)

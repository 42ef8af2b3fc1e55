"""What `.checkpoint` notes hangs on the version that wrote it; RocksDB's version tells which."""

from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import UnknownOffsetError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.identity import ChangelogPartition
from snapstore.operations.fsck import FsckOptions, fsck
from tests.support.mend_lab import ports
from tests.support.state_dirs import make_database, write_checkpoint

LINE = ChangelogPartition("app-counts-changelog", 0)


def make_store(state_dir: Path, version: str, noted: int, *, segmented: bool = False) -> Path:
    """Leave a store as an older version would: without a family `offsets`."""
    task = state_dir / "app" / "0_0"
    place = "counts/counts.0" if segmented else "rocksdb/counts"
    folder = make_database(task / place, {"default": {b"k": b"v"}})
    for options in folder.glob("OPTIONS-*"):
        text = options.read_text()
        (line,) = (each for each in text.splitlines() if "rocksdb_version=" in each)
        options.write_text(text.replace(line, f"  rocksdb_version={version}"))
    write_checkpoint(task, f"app-counts-changelog 0 {noted}")
    return task


def look(state_dir: Path) -> tuple[int, tuple[str, ...]]:
    layout = KafkaStreamsLayout()
    (location,) = layout.discover(state_dir).locations
    noted = layout.noted_offsets(location)
    with RocksDBBackend().capture(location) as capture:
        positions = layout.positions(location, noted, capture.view, running=False)
        told = layout.remarks(location, noted, capture.view, positions)
    (position,) = positions
    assert position.changelog == LINE
    return position.applied_offset, told


@pytest.mark.parametrize("segmented", [False, True])
@pytest.mark.parametrize("version", ["5.0.1", "5.7.3", "5.18.3"])
def test_h13_to_2_5_the_next_offset_is_noted_and_one_less_is_applied(
    tmp_path: Path, version: str, segmented: bool
) -> None:
    task = make_store(tmp_path, version, 70, segmented=segmented)
    applied, told = look(tmp_path)
    assert applied == 69
    assert any("noted the offset to read next" in remark for remark in told)
    notes = fsck(tmp_path, ports(), FsckOptions()).notes
    assert any(note.startswith(f"{task}/.checkpoint was written by") for note in notes)


@pytest.mark.parametrize("version", ["5.18.4", "6.19.3", "10.1.3"])
def test_h13_from_2_6_on_the_applied_offset_is_noted(tmp_path: Path, version: str) -> None:
    make_store(tmp_path, version, 70)
    assert look(tmp_path) == (70, ())


def test_h13_a_next_offset_of_zero_means_that_nothing_is_applied(tmp_path: Path) -> None:
    make_store(tmp_path, "5.18.3", 0)
    with pytest.raises(UnknownOffsetError, match="is applied yet"):
        look(tmp_path)

"""A snapshot of a newer RocksDB than that of the application in the target."""

import re
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import WrongGenerationError
from tests.support.restore_lab import REPLACE, UNCHECKED, RestoreLab
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs


def state(folder: Path, version: str | None = None, table_format: int | None = None) -> Path:
    """A state directory, whose RocksDB says that it is of that version."""
    for task in ("0_0", "0_1"):
        store = make_key_value(
            folder, task, "counts", Pairs(pairs=some_pairs(20), applied_offset=9)
        )
        for options in store.glob("OPTIONS-*") if version is not None else ():
            lines = [
                f"  rocksdb_version={version}" if "rocksdb_version=" in line else line
                for line in options.read_text().splitlines()
            ]
            text = "\n".join(lines)
            if table_format is not None:
                text = re.sub(r"format_version=\d+", f"format_version={table_format}", text)
            options.write_text(text)
    return folder


def test_h15_a_snapshot_notes_the_rocksdb_that_wrote_it(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    outcome, _ = lab.save(state(tmp_path / "state"))
    assert outcome.snapshot is not None
    description = outcome.snapshot.description
    (options,) = [*(tmp_path / "state" / APPLICATION / "0_0").rglob("OPTIONS-*")][-1:]
    assert f"rocksdb_version={description.rocksdb_version}" in options.read_text()
    assert description.table_format is not None


@pytest.mark.parametrize("there", ["0_0", "0_1"], ids=["replaced", "another task"])
def test_h15_tables_that_the_application_cannot_read_are_refused_by_name(
    tmp_path: Path, there: str
) -> None:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "state"))
    target = state(tmp_path / "old", "5.18.4")
    with pytest.raises(WrongGenerationError) as refused:
        lab.restore(target, lab.requests(task=there), REPLACE)
    assert "RocksDB 5.18.4" in refused.value.message
    assert refused.value.facts["target"] == "5.18.4"


def test_h15_a_newer_writer_whose_tables_can_be_read_is_told(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "state", "99.0.0"))
    target = state(tmp_path / "old", "98.9.0")
    lab.restore(target, options=REPLACE)
    assert any("RocksDB 99.0.0" in note and "98.9.0" in note for note in lab.notes)


def test_h15_an_older_writer_and_an_empty_target_are_fine(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "state", "8.6.0"))
    lab.restore(tmp_path / "new")
    lab.restore(state(tmp_path / "newer", "99.0.0"), options=REPLACE)
    assert not any("RocksDB" in note for note in lab.notes)


def test_h15_an_empty_target_is_judged_by_the_version_that_will_start(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "state", "10.4.0", table_format=7))
    for version in ("4.0.0", "4.4.0"):
        options = msgspec.structs.replace(UNCHECKED, version=version)
        with pytest.raises(WrongGenerationError) as refused:
            lab.restore(tmp_path / "new", options=options)
        assert f"Kafka Streams {version} comes with RocksDB" in refused.value.message
        assert refused.value.facts["table_format"] == 7
    assert not (tmp_path / "new").exists()
    lab.restore(tmp_path / "new", options=msgspec.structs.replace(UNCHECKED, version="9.9"))
    assert any("Kafka Streams 9.9 comes with is not known" in note for note in lab.notes)


def test_h15_a_version_whose_rocksdb_reads_the_tables_is_told_or_fine(tmp_path: Path) -> None:
    lab = RestoreLab(tmp_path)
    lab.save(state(tmp_path / "state", "10.1.3", table_format=6))
    lab.restore(tmp_path / "same", options=msgspec.structs.replace(UNCHECKED, version="4.2.1"))
    assert not any("RocksDB" in note for note in lab.notes)
    lab.restore(tmp_path / "older", options=msgspec.structs.replace(UNCHECKED, version="4.0.0"))
    assert any("RocksDB 10.1.3" in note and "9.7.3" in note for note in lab.notes)

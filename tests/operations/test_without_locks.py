"""On a file system without locks nothing tells whether the application runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.restore_lab import RestoreLab
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

SCRIPT = """
import sys
from pathlib import Path
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.backends.rocksdb.options import RocksDBOptions
from snapstore.errors import SnapstoreError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions
from tests.support.no_locks import forbid_locks
from tests.support.restore_lab import RestoreLab

folder, assumed = Path(sys.argv[1]), sys.argv[2] == "True"
lab = RestoreLab.reopened(folder)
lab.layout = KafkaStreamsLayout(KafkaStreamsOptions(assume_stopped_without_locks=assumed))
# Elsewhere on the machine there are locks, as in /dev/shm.
lab.backends = {"rocksdb": RocksDBBackend(RocksDBOptions(staging_dir=str(folder)))}
forbid_locks()
try:
    lab.restore(folder / "target")
    (outcome,) = lab.save(folder / "source")
    print(outcome.snapshot.description.source)
except SnapstoreError as error:
    print(error.message, error.hint)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = Pairs(pairs=some_pairs(20), applied_offset=99)
    make_key_value(tmp_path / "source", "0_1", "counts", content)
    (tmp_path / "source" / APPLICATION / ".lock").touch()
    RestoreLab(tmp_path).save(tmp_path / "source")
    return tmp_path


def run(folder: Path, *, assumed: bool) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(assumed)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    return done.stdout


def test_a_restore_there_is_refused_and_names_the_option_h66(folder: Path) -> None:
    told = run(folder, assumed=False)
    assert "cannot tell whether the application runs" in told
    assert "No locks available" in told
    assert "assume_stopped_without_locks: true below state.options" in told
    assert not [*(folder / "target").rglob("CURRENT")]


def test_with_the_option_stores_are_restored_and_taken_as_closed_h66(folder: Path) -> None:
    assert run(folder, assumed=True) == "closed\n"
    assert len([*(folder / "target").rglob("CURRENT")]) == 1

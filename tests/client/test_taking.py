"""What a run starts besides its own threads, and whom it asks."""

import subprocess
import sys
from pathlib import Path

import pytest

import snapstore
from snapstore.repository import keys
from tests.support.fixtures import unpack
from tests.support.streams_store import Pairs, make_key_value, some_pairs

_SNAPSHOT = """
import os, sys
from pathlib import Path
import snapstore
place, state_dir = map(Path, sys.argv[1:])
with snapstore.create(str(place)) as repository:
    report = repository.snapshot(state_dir)
assert sum(each.status == "stored" for each in report.outcomes) > 1, "one store tells nothing"
assert not report.failed
assert "subprocess" not in sys.modules, "a program was started to ask for locks"
assert not Path(f"/proc/self/task/{os.getpid()}/children").read_text(), "a child was left"
"""


def test_a_run_asks_one_child_for_the_locks_of_all_stores(tmp_path: Path) -> None:
    """A program for each question would take 30 ms of the processor, twice for each store."""
    unpack("ks440-alos", tmp_path / "state")
    done = subprocess.run(
        [sys.executable, "-c", _SNAPSHOT, tmp_path / "repository", tmp_path / "state"],
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("lost", "status", "sends"),
    [
        ("its snapshot", "stored", False),
        ("a blob", "unchanged", True),
        ("everything", "stored", True),
    ],
)
def test_what_another_host_deletes_a_moment_later_is_missed_by_the_next_run(
    tmp_path: Path, lost: str, status: str, sends: bool
) -> None:
    place, state = str(tmp_path / "repository"), tmp_path / "state"
    make_key_value(state, "0_0", "counts", Pairs(pairs=some_pairs(200), applied_offset=199))
    with snapstore.create(place) as repository:
        (first,) = repository.snapshot(state, skip_unchanged=True).outcomes
        (again,) = repository.snapshot(state, skip_unchanged=True).outcomes
        assert (first.status, again.status) == ("stored", "unchanged")
    with snapstore.open(place) as other:
        storage = other.repository.storage
        if lost == "its snapshot":
            other.delete([listed.id for listed in other.list().snapshots])
        elif lost == "a blob":
            storage.delete([next(storage.list(keys.BLOBS)).key])
        else:
            storage.delete([stat.key for stat in storage.list("")])
    if lost == "everything":
        snapstore.create(place).close()
    with snapstore.open(place) as repository:
        (anew,) = repository.snapshot(state, skip_unchanged=True).outcomes
        assert (anew.status, anew.new_files > 0) == (status, sends)
        assert repository.verify([repository.list().snapshots[0].id], read_data=True).sound

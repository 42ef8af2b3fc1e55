"""Swaps that were cut short are found beside applications that run."""

import os
from pathlib import Path

from snapstore.operations.swap import cut_short_below
from tests.support.fixtures import unpack
from tests.support.restless import restless


def test_they_are_found_while_other_folders_come_and_go(tmp_path: Path) -> None:
    application = unpack("ks440-alos", tmp_path)
    cut_short = application / "1_1"
    journal = application / ".snapstore" / f"work-{os.geteuid()}" / "swaps" / "1_1.json"
    journal.parent.mkdir(parents=True)
    journal.parent.parent.chmod(0o700)
    journal.touch()
    with restless(application / "0_0", "remaking"):
        for _ in range(200):
            assert cut_short_below(tmp_path) == [cut_short]

"""One run at a time in a work folder, however fast one comes after the other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snapstore.errors import RunInProgressError, UnavailableError
from snapstore.model.folder import Folder
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.stage_files import FileWriter, Permissions


def test_runs_that_end_while_others_begin_exclude_one_another_and_fail_in_no_other_way(
    tmp_path: Path,
) -> None:
    work = tmp_path / ".snapstore"
    writer = FileWriter(Permissions(file_mode=0o640, dir_mode=0o750, owner=None), lambda _: None)
    inside: list[int] = []

    def run(number: int) -> int:
        held = 0
        for _ in range(400):
            try:
                with Folder.open(tmp_path) as tasks, work_lock(tasks, writer):
                    inside.append(number)
                    assert inside == [number]
                    inside.remove(number)
                held += 1
            except RunInProgressError:
                continue
        return held

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(run, range(4))) > 10
    assert not work.exists() or not any(work.iterdir())


def test_where_no_folder_can_be_made_it_is_not_tried_for_ever() -> None:
    """To make one below /proc fails as if a folder above had just been removed."""
    writer = FileWriter(Permissions(file_mode=0o640, dir_mode=0o750, owner=None), lambda _: None)
    with (
        Folder.open(Path("/proc")) as tasks,
        pytest.raises(UnavailableError),
        work_lock(tasks, writer),
    ):
        pass

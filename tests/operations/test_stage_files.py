"""What a restore writes is on the disk before it is put into place."""

import os
import threading
from pathlib import Path
from types import BuiltinFunctionType, FrameType

from snapstore.operations.stage_files import sync_tree


def test_every_file_and_folder_of_a_tree_is_made_durable_folders_last(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / f"folder{number % 3}" / "deeper" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    synced: list[bool] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call" and isinstance(argument, BuiltinFunctionType):
            if argument is not os.fsync:
                return
            synced.append(Path(f"/proc/self/fd/{frame.f_locals['fd']}").is_dir())

    threading.setprofile(note)
    try:
        sync_tree(tmp_path)
    finally:
        threading.setprofile(None)

    assert synced == [False] * 20 + [True] * 7

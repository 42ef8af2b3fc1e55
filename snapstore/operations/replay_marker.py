"""Tell the next run what a replay that was killed has left in the staging folder.

The marker lies beside the staged directory and says what was staged there: the next run goes on
with it only if it would stage the same.
"""

from pathlib import Path

from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.operations.restore_target import work_folder
from snapstore.operations.stage_files import FileWriter, os_errors, sync_folder

_MODE = 0o640


def set_marker(task_dir: Path, content: bytes, files: FileWriter) -> None:
    """To be called once the staged directory is complete and durable."""
    marker = _marker(task_dir)
    files.make_folder(marker.parent)
    files.write(marker, content, _MODE)
    sync_folder(marker.parent)


def has_marker(task_dir: Path, content: bytes) -> bool:
    """Whether what is staged is what ``content`` stands for."""
    try:
        return read_regular(_marker(task_dir)) == content
    except (FileNotFoundError, NotRegularError):
        return False


def clear_marker(task_dir: Path) -> None:
    """To be called before staging is changed in any other way, and after it got into place."""
    marker = _marker(task_dir)
    if marker.exists():
        with os_errors(marker):
            marker.unlink()
        sync_folder(marker.parent)


def _marker(task_dir: Path) -> Path:
    return work_folder(task_dir) / "replays" / f"{task_dir.name}.json"

"""Tell the next run what a replay that was killed has left in the staging folder.

The marker lies beside the staged directory and says what was staged there: the next run goes on
with it only if it would stage the same.
"""

import os

from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.operations.stage_files import FileWriter, os_errors
from snapstore.operations.work_area import WorkArea

_MODE = 0o640
_MARKERS = "replays"


def set_marker(area: WorkArea, task: str, content: bytes, files: FileWriter) -> None:
    """To be called once the staged directory is complete and durable."""
    with os_errors(area.own.path), files.make_in(area.own, _MARKERS) as markers:
        files.write(markers.here / _name(task), content, _MODE)
        markers.sync()


def has_marker(area: WorkArea, task: str, content: bytes) -> bool:
    """Whether what is staged is what ``content`` stands for."""
    try:
        return read_regular(area.part_of(_MARKERS) / _name(task)) == content
    except (FileNotFoundError, NotRegularError):
        return False


def clear_marker(area: WorkArea, task: str) -> None:
    """To be called before staging is changed in any other way, and after it got into place."""
    with os_errors(area.own.path):
        try:
            with area.own.below(_MARKERS) as markers:
                os.unlink(_name(task), dir_fd=markers.fd)
                markers.sync()
        except FileNotFoundError:
            return


def _name(task: str) -> str:
    return f"{task}.json"

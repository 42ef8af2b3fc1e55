"""Refuse names that would lead a restore outside its task directory."""

from pathlib import Path

from snapstore.errors import UnsafePathError
from snapstore.model.manifest_rules import fault_of_name

PER_HOST_NAMES = frozenset({".lock", "kafka-streams-process-metadata"})
"""Kafka Streams' own files of one host (StateDirectory): they mean nothing on another."""


def check_inside(target: Path, task_dir: Path) -> None:
    """Raise UnsafePathError unless the task directory is a real folder's place in the target.

    It may be the target itself, where a layout has one store in one folder.

    Links below the target are refused: the rename that puts the new directory into place would
    replace the link, not what it points to.
    """
    if ".." in task_dir.parts or not task_dir.is_relative_to(target):
        raise UnsafePathError(
            f"refused: {task_dir} does not lie in {target}", target=str(target), path=str(task_dir)
        )
    for path in (task_dir, *task_dir.parents):
        if path == target:
            return
        if path.is_symlink():
            raise UnsafePathError(
                f"refused: {path} is a symbolic link",
                hint="name the directory it points to as the target",
                path=str(path),
            )


def check_note_name(name: str) -> None:
    """Raise UnsafePathError unless a layout's note stays inside the task directory."""
    if fault := fault_of_name(name):
        raise UnsafePathError(f"refused: the name {name!r} {fault}", name=name)

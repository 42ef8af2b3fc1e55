"""Refuse names that would lead a restore outside its task directory."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

from snapstore.errors import UnsafePathError
from snapstore.model.snapshot import Manifest

PER_HOST_NAMES = frozenset({".lock", "kafka-streams-process-metadata"})
"""Kafka Streams' own files of one host (StateDirectory): they mean nothing on another."""

WORK_FOLDER = ".snapstore"
_PART_LIMIT_BYTES = 255
_NAME_LIMIT_BYTES = 4000


def fault_of_name(name: str) -> str | None:
    """Say what is wrong with a name relative to a task directory, or None."""
    if not name or len(name.encode("utf-8", "surrogatepass")) > _NAME_LIMIT_BYTES:
        return "is empty or too long"
    if name.startswith("/"):
        return "is absolute"
    if "\\" in name:
        return "holds a backslash"
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
        return "holds a control character"
    for part in name.split("/"):
        if part in {"", ".", ".."}:
            return f"holds the part {part!r}"
        if len(part.encode()) > _PART_LIMIT_BYTES:
            return "holds a part that is too long"
        if part == WORK_FOLDER:
            return f"holds the part {part!r}"
    return None


def check_names(manifests: Iterable[Manifest]) -> None:
    """Raise UnsafePathError unless all names of all manifests stay inside and apart.

    Every offending name is shown, so one look is enough.
    """
    bad: list[str] = []
    for manifest in manifests:
        bad.extend(_faults(manifest))
    if bad:
        raise UnsafePathError(
            "refused: names in the snapshot lead outside the target or collide",
            hint="the snapshot was not written by snapstore, or was tampered with",
            names=bad,
        )


def _faults(manifest: Manifest) -> list[str]:
    store = manifest.description.store
    bad = [
        f"{name!r} (name of the {kind})"
        for kind, name in (
            ("application", store.application),
            ("store", store.store),
        )
        if fault_of_name(name) or "/" in name
    ]
    bad += [
        f"{name!r} {fault}"
        for name in (store.task, *(entry.name for entry in manifest.files))
        if (fault := fault_of_name(name))
    ]
    bad += [
        f"{name!r} {fault}"
        for name in (manifest.description.root, *manifest.description.databases)
        if name != "." and (fault := fault_of_name(name))
    ]
    return bad + _collisions([entry.name for entry in manifest.files])


def _collisions(names: list[str]) -> list[str]:
    files: set[str] = set()
    bad = []
    for name in names:
        if name in files:
            bad.append(f"{name!r} occurs twice")
        files.add(name)
    bad += [
        f"{name!r} is a file and a folder"
        for name in sorted(files & {parent for name in files for parent in folders_of(name)})
    ]
    return bad


def folders_of(name: str) -> list[str]:
    """Return the folders above a relative name: ``a/b/c`` gives ``a`` and ``a/b``."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def lies_in(name: str, folder: str) -> bool:
    """Whether a relative name is the folder itself or something below it."""
    return folder == "." or name == folder or name.startswith(folder + "/")


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

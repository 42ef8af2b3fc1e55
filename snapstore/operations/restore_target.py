"""Look at the place of a restore: is it fit, what lies there, how much space is left."""

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from snapstore.errors import ConfigError, UnsafePathError
from snapstore.model.manifest_rules import WORK_FOLDER
from snapstore.model.regular_file import open_regular
from snapstore.model.snapshot import FileEntry
from snapstore.operations.restore_plan import FoundFile, PresentStore, TaskTarget
from snapstore.operations.stage_files import os_errors

SYSTEM_FOLDERS = frozenset(
    Path(name)
    for name in (
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib64",
        "/mnt",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/srv",
        "/sys",
        "/tmp",
        "/usr",
        "/var",
        "/var/lib",
    )
)
_CHUNK_BYTES = 1 << 20


def check_target(target: Path) -> None:
    """Raise unless a state directory may be restored to; nothing is written.

    UnsafePathError for ``/``, system folders, home directories and a repository; ConfigError for a
    path that is a file or cannot be written.
    """
    resolved = target.resolve()
    homes = {Path(entry.pw_dir).resolve() for entry in pwd.getpwall()}
    homes.add(Path("~").expanduser().resolve())
    if resolved in SYSTEM_FOLDERS or resolved in homes:
        raise UnsafePathError(
            f"refused: {resolved} is no place for a state directory",
            hint="name a directory of its own as the target",
            path=str(resolved),
        )
    if (resolved / "snapstore.json").exists():
        raise UnsafePathError(
            f"refused: {resolved} is a snapstore repository",
            hint="name the state directory as the target",
            path=str(resolved),
        )
    check_writable(resolved)


def check_writable(path: Path) -> None:
    """Raise ConfigError unless the directory, or the one it will be made in, can be written."""
    for candidate in (path, *path.parents):
        if not os.path.lexists(candidate):
            continue
        if not candidate.is_dir():
            raise ConfigError(f"{candidate} is not a directory", path=str(candidate))
        if not os.access(candidate, os.W_OK | os.X_OK):
            raise ConfigError(
                f"cannot write into {candidate}",
                hint="check its owner and mode, and that the file system is not read-only",
                path=str(candidate),
            )
        return


def look_at_task(
    task_dir: Path, files: Sequence[FileEntry], stores: Sequence[PresentStore]
) -> TaskTarget:
    """Return what lies at the place of a task and in what an interrupted run has staged.

    Only files that could serve, by name and size, are read and hashed.
    """
    wanted = {entry.name: entry for entry in files if entry.inline is None}
    with os_errors(task_dir, "read"):
        current, odd = _look(task_dir, wanted)
        staged, _ = _look(staging_folder(task_dir), wanted)
        parts = {
            entry.name: _written_bytes(entry.stat(follow_symlinks=False))
            for entry in _entries(work_folder(task_dir) / "parts")
        }
    return TaskTarget(
        task_dir=task_dir,
        current=current,
        odd=odd,
        staged=staged,
        parts=parts,
        stores=tuple(stores),
        free_bytes=free_bytes(task_dir),
    )


def _written_bytes(status: os.stat_result) -> int:
    """Return about how much of a partial file is there: one that is fetched in pieces has holes."""
    return min(status.st_size, status.st_blocks * 512)


def work_folder(task_dir: Path) -> Path:
    """Where snapstore keeps its own files: beside the tasks, never inside one."""
    return task_dir.parent / WORK_FOLDER


def staging_folder(task_dir: Path) -> Path:
    return work_folder(task_dir) / "staging" / task_dir.name


def free_bytes(path: Path) -> int:
    """Return what an ordinary user may still write on the file system of the path."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    status = os.statvfs(existing)
    return status.f_bavail * status.f_frsize


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a regular file in hex; links are not followed."""
    digest = hashlib.sha256()
    with os.fdopen(open_regular(path), "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def walk_files(folder: Path, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield every entry below a folder that is no folder, with its relative name; sorted."""
    for entry in sorted(_entries(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from walk_files(folder / entry.name, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)


def _look(
    folder: Path, wanted: Mapping[str, FileEntry]
) -> tuple[dict[str, FoundFile], tuple[str, ...]]:
    found: dict[str, FoundFile] = {}
    odd: list[str] = []
    for name, status in walk_files(folder):
        if not stat.S_ISREG(status.st_mode):
            odd.append(name)
            continue
        entry = wanted.get(name)
        alike = entry is not None and entry.size == status.st_size
        found[name] = FoundFile(status.st_size, hash_file(folder / name) if alike else None)
    return found, tuple(odd)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []

"""Look at the place of a restore: is it fit, what lies there, how much space is left."""

import hashlib
import os
import pwd
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from snapstore.errors import ConfigError, UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.home import expanded
from snapstore.model.snapshot import FileEntry
from snapstore.model.temporary import system_folder
from snapstore.operations.restore_plan import FoundFile, PresentStore, TaskTarget
from snapstore.operations.stage_files import os_errors
from snapstore.operations.work_area import PARTS, STAGING, FoundArea, WorkArea

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
TEMPORARY_FOLDERS = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run"))
_CHUNK_BYTES = 1 << 20
_OCTAL = re.compile(r"\\([0-7]{3})")


def check_target(target: Path) -> None:
    """Raise unless a state directory may be restored to; nothing is written.

    UnsafePathError for ``/``, system folders, home directories and a repository; ConfigError for a
    path that is a file or cannot be written.
    """
    resolved = target.resolve()
    homes = {Path(entry.pw_dir).resolve() for entry in pwd.getpwall()}
    with suppress(ConfigError):
        homes.add(expanded("~").resolve())
    if resolved in SYSTEM_FOLDERS or resolved in homes:
        raise UnsafePathError(
            f"refused: {resolved} is no place for a state directory",
            hint="name a directory of its own as the target",
            path=str(resolved),
        )
    for folder in (resolved, *resolved.parents):
        if (folder / "snapstore.json").exists():
            raise UnsafePathError(
                f"refused: {resolved} is in a snapstore repository"
                if folder != resolved
                else f"refused: {resolved} is a snapstore repository",
                hint="name the state directory as the target",
                path=str(folder),
            )
    check_writable(resolved)


def remark_on_place(target: Path) -> str | None:
    """Return what is to be said of a target that does not stay, as Kafka Streams' default."""
    for folder in (*TEMPORARY_FOLDERS, system_folder()):
        if folder is not None and target.is_relative_to(folder):
            return (
                f"{target} lies below {folder}: a reboot or a cleaner takes it away; give the"
                " application a state.dir elsewhere"
            )
    return None


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
    task_dir: Path,
    files: Sequence[FileEntry],
    stores: Sequence[PresentStore],
    area: WorkArea | FoundArea,
) -> TaskTarget:
    """Return what lies at the place of a task and in what an interrupted run has staged.

    Only files that could serve, by name and size, are read and hashed.
    Raises UnsafePathError where something is mounted there.
    """
    wanted = {entry.name: entry for entry in files if entry.inline is None}
    current: dict[str, FoundFile] = {}
    staged: dict[str, FoundFile] = {}
    parts: dict[str, int] = {}
    odd: tuple[str, ...] = ()
    with os_errors(task_dir, "read"):
        if area.tasks is not None:
            _require_no_mount(area.tasks.path / task_dir.name)
            if area.tasks.holds_folder(task_dir.name):
                current, odd = _look(area.tasks, task_dir.name, wanted)
        if area.own is not None:
            staged, _ = _look(area.own, f"{STAGING}/{task_dir.name}", wanted)
            parts = {name: _written_bytes(status) for name, status in area.own.walk(PARTS)}
    return TaskTarget(
        task_dir=task_dir,
        current=current,
        odd=odd,
        staged=staged,
        parts=parts,
        stores=tuple(stores),
        free_bytes=free_bytes(task_dir),
    )


def _require_no_mount(task_dir: Path) -> None:
    """A directory on which something is mounted cannot be exchanged, and must not be emptied."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except FileNotFoundError:
        return
    for line in mounts.splitlines():
        place = Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]))
        if place.is_relative_to(task_dir):
            raise UnsafePathError(
                f"refused: something is mounted on {place}, and {task_dir} is replaced as a whole",
                hint="unmount it, or restore to a directory above which it is mounted",
                path=str(place),
            )


def _written_bytes(status: os.stat_result) -> int:
    """Return about how much of a partial file is there: one that is fetched in pieces has holes."""
    return min(status.st_size, status.st_blocks * 512)


def free_bytes(path: Path) -> int:
    """Return what an ordinary user may still write on the file system of the path."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    status = os.statvfs(existing)
    return status.f_bavail * status.f_frsize


def _look(
    around: Folder, name: str, wanted: Mapping[str, FileEntry]
) -> tuple[dict[str, FoundFile], tuple[str, ...]]:
    found: dict[str, FoundFile] = {}
    odd: list[str] = []
    for inner, status in around.walk(name):
        if stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            odd.append(inner)
            continue
        entry = wanted.get(inner)
        alike = entry is not None and entry.size == status.st_size
        sha256 = _hash(around.open_file(f"{name}/{inner}")) if alike else None
        found[inner] = FoundFile(status.st_size, sha256)
    return found, tuple(odd)


def _hash(fd: int) -> str:
    """Return the SHA-256 of a file in hex, and close it."""
    digest = hashlib.sha256()
    with os.fdopen(fd, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

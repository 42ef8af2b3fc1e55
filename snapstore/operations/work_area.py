"""Where a task is built: beside the tasks, and out of reach of whoever else may write there.

    .snapstore/lock          one run at a time
    .snapstore/work-UID/     of the user of a run alone: staging, parts, swaps, replays
    .snapstore/quarantine/   kept for people
    .snapstore/replaced/     where the old directories go, and stay if that was asked for

The folder of tasks belongs to the application's user, and root may be at work. So each folder is
held by a descriptor, and what an earlier run has left is believed only where nobody but the user of
this run can have written it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder, way
from snapstore.model.manifest_rules import WORK_FOLDER
from snapstore.operations.stage_files import FileWriter, Permissions, Warn, os_errors

STAGING = "staging"
PARTS = "parts"


class WorkArea:
    """The folders of the work on the tasks of one folder; ``tasks`` is that folder."""

    def __init__(self, tasks: Folder, shared: Folder, own: Folder) -> None:
        self.tasks = tasks
        self.shared = shared
        self.own = own

    def staged(self, task: str) -> Path:
        """Where the new directory of a task is built: a path for this process, and not for others.

        It may not be there yet.
        """
        return self.own.here / STAGING / task

    def part_of(self, name: str) -> Path:
        """Return the path of a name in the own folder."""
        return self.own.here / name


class FoundArea(NamedTuple):
    """What there is of them, to be looked at; None where it is not there, or not to be believed."""

    tasks: Folder | None
    own: Folder | None


def make_tasks(root: Path, parent: Path, asked: Permissions, warn: Warn) -> Folder:
    """Open a folder of tasks, and make it and those above it that are missing.

    Raises NoSpaceError, ConfigError, UnavailableError or UnsafePathError with the path.
    """
    start, name = way(root, parent)
    parts = name.split("/") if name else []
    while not os.path.lexists(start):
        parts.insert(0, start.name)
        start = start.parent
    with os_errors(parent):
        folder = Folder.open(start)
        for part in parts:
            with folder:
                inner = FileWriter.within(folder, asked, warn).make_in(folder, part)
                if part not in folder.names():
                    inner.close()
                    raise UnsafePathError(
                        f"refused: {folder.path} has {part!r} in another spelling only, which its"
                        " file system takes for the same",
                        hint="restore to a directory of its own",
                        path=str(inner.path),
                    )
                folder = inner
    return folder


@contextmanager
def found_area(root: Path, parent: Path) -> Iterator[FoundArea]:
    """Open what is there of a folder of tasks, and what an earlier run of this user has left.

    Raises UnsafePathError where a link leads to the folder of tasks.
    """
    with ExitStack() as held:
        tasks = own = None
        with suppress(FileNotFoundError):
            tasks = held.enter_context(Folder.reach(root, parent))
            with suppress(UnsafePathError):
                shared = held.enter_context(tasks.below(WORK_FOLDER))
                found = held.enter_context(shared.below(_own_name()))
                require_own(found)
                own = found
        yield FoundArea(tasks, own)


def open_own(shared: Folder) -> Folder:
    """Open the folder of this user's runs alone, or make it.

    Raises UnsafePathError where somebody else has made it, or may write in it.
    """
    own, _ = shared.make(_own_name())
    try:
        require_own(own)
    except BaseException:
        own.close()
        raise
    return own


def require_own(folder: Folder) -> None:
    status = folder.status()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UnsafePathError(
            f"refused: {folder.path} belongs to user {status.st_uid}, mode"
            f" {stat.S_IMODE(status.st_mode):04o}, and not to user {os.geteuid()} alone",
            hint="nothing in it is believed: look at what it is, and move it away",
            path=str(folder.path),
        )


def remove_own(shared: Folder) -> None:
    shared.remove_if_empty(_own_name())


def _own_name() -> str:
    return f"work-{os.geteuid()}"

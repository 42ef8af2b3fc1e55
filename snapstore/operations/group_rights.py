"""Tell what a group that may write into a folder cannot write in it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from snapstore.errors import UnsafePathError
from snapstore.model.folder import Folder
from snapstore.model.units import count


def remark_on_group(state_dir: Path) -> str | None:
    """Return a sentence on files that an application may be unable to write, or None.

    On a volume of a group (``fsGroup``) the application has its rights by the group. What belongs
    to the user of this run is taken for the application's own, unless that is root.
    """
    try:
        with Folder.open(state_dir.resolve()) as folder:
            found = [*_unwritable(folder)]
    except (OSError, UnsafePathError):
        # What cannot be looked at is told where it is read.
        return None
    if not found:
        return None
    path, status = found[0]
    return (
        f"{count(len(found), 'file')} in folders that a group may write cannot be written by it, as"
        f" {state_dir / path} of user {status.st_uid}: an application that another user of the"
        " group runs cannot open what is in there; chgrp and chmod g+w them"
    )


def _unwritable(folder: Folder) -> Iterator[tuple[str, os.stat_result]]:
    folders = {"": folder.status()}
    for name, status in folder.walk():
        around = folders.get(name.rpartition("/")[0])
        if stat.S_ISDIR(status.st_mode):
            folders[name] = status
        if around is None or stat.S_ISLNK(status.st_mode):
            continue
        shared = bool(around.st_mode & stat.S_IWGRP)
        open_to_it = status.st_gid == around.st_gid and bool(status.st_mode & stat.S_IWGRP)
        own = status.st_uid == os.geteuid() != 0 or (os.geteuid() == 0 != status.st_uid)
        if shared and not open_to_it and not own:
            yield name, status

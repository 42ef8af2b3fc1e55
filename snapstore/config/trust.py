"""Whether a configuration file that nobody named may be obeyed.

A file in the working directory may be anybody's. It says where snapshots go and come from, so it
must be the runner's or root's, and nobody else may be able to write it or to put another into its
place. What makes a driver load a library or run a command is taken from a named file only.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from snapstore.errors import ConfigError

CODE_KEYS: Final = frozenset(
    {
        "plugin.library.paths",
        "sasl.kerberos.kinit.cmd",
        "ssl.engine.id",
        "ssl.engine.location",
        "ssl.providers",
    }
)
"""Properties with which librdkafka loads a library or runs a shell command."""

_NAME_IT: Final = "name the file with --config or SNAPSTORE_CONFIG if it is meant"


def require_own(path: Path) -> None:
    """Raise ConfigError when somebody else could have written the file, or put it there."""
    doubt = doubt_of(path)
    if doubt is not None:
        raise ConfigError(
            f"{path} was found and is not obeyed: {doubt.why}",
            hint=f"{doubt.remedy}, or {_NAME_IT}" if doubt.remedy else _NAME_IT,
            path=str(path),
        )


class Doubt(NamedTuple):
    """Why a path may hold what somebody else wrote, and the command that helps, if one does."""

    why: str
    remedy: str | None


def doubt_of(path: Path) -> Doubt | None:
    """Look whether only the runner and root can have written what is at a path.

    Names that are not there are passed over.
    """
    place = path.absolute()
    for each in dict.fromkeys([*_up(place), *_up(place.resolve())]):
        try:
            status = each.lstat()
        except FileNotFoundError:
            continue
        if status.st_uid not in (0, os.geteuid()):
            return Doubt(f"{each} belongs to another user (uid {status.st_uid})", None)
        if not stat.S_ISLNK(status.st_mode) and _is_written_by_others(status):
            return Doubt(
                f"others may write {each} (mode {stat.S_IMODE(status.st_mode):o})",
                f"chmod go-w {each}",
            )
    return None


def require_no_code(written: Mapping[str, object], path: Path) -> None:
    """Raise ConfigError when a file that was found asks for code to be loaded or run."""
    kafka = written.get("kafka")
    properties = kafka.get("properties") if isinstance(kafka, dict) else None
    for name in properties if isinstance(properties, dict) else ():
        if name in CODE_KEYS:
            raise ConfigError(
                f"kafka.properties.{name} loads a library or runs a command, and {path} was found"
                " and not named",
                hint=_NAME_IT,
                key=f"kafka.properties.{name}",
                path=str(path),
            )


def _up(path: Path) -> Iterator[Path]:
    yield path
    yield from path.parents


def _is_written_by_others(status: os.stat_result) -> bool:
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        # As /tmp: others may add names there, and cannot take ours away.
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private(status.st_gid)


def _is_private(group: int) -> bool:
    """Whether the group is that of the runner, or of root, alone: as umask 002 goes with."""
    # Imported here: hardly any file is writable by a group.
    import grp
    import pwd

    try:
        name, _, _, members = grp.getgrgid(group)
    except KeyError:
        return False
    try:
        runner = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        # A uid without an account, as containers have: no group is its own.
        runner = "root"
    return name in (runner, "root") and set(members) <= {runner, "root"}

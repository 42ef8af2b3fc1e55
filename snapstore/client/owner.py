"""Whose the restored files will be."""

import grp
import pwd

from snapstore.config.schema import RestoreConfig
from snapstore.errors import ConfigError
from snapstore.operations.stage_files import Permissions


def permissions(config: RestoreConfig) -> Permissions:
    """Return the modes and the owner that the configuration asks for."""
    return Permissions(
        file_mode=int(config.file_mode, 8),
        dir_mode=int(config.dir_mode, 8),
        owner=None if config.owner is None else parse_owner(config.owner),
    )


def parse_owner(text: str) -> tuple[int, int]:
    """Return the ids that ``user:group`` names, by name or number; ``user`` means its own group.

    Raises ConfigError for a name that this host does not know.
    """
    user, colon, group = text.partition(":")
    try:
        if user.isdigit():
            uid = int(user)
            own_group = None
        else:
            entry = pwd.getpwnam(user)
            uid, own_group = entry.pw_uid, entry.pw_gid
        if colon:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        else:
            gid = pwd.getpwuid(uid).pw_gid if own_group is None else own_group
    except KeyError as exc:
        raise ConfigError(
            f"restore.owner: this host knows no such user or group: {text!r}",
            hint="write numbers, as 1000:1000",
            key="restore.owner",
        ) from exc
    return uid, gid

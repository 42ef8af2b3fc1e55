"""Where this host remembers things from one run to the next: hashes, locks, rates, origins."""

import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from snapstore.config import Config
from snapstore.config.trust import Doubt, doubt_of
from snapstore.errors import ConfigError
from snapstore.model.home import expanded
from snapstore.model.temporary import system_folder

_LOG = logging.getLogger(__name__)
_KEY = "state.cache_dir"
_MEMORY = Path("/dev/shm")


def own_cache(config: Config, name: str) -> Path:
    """Return the folder of that name below ``state.cache_dir``, which only this user can read.

    Where that was not set and cannot be made (no home, a root file system that is read-only), or
    somebody else can write there, a folder in the system's temporary one or in memory stands in for
    it: what is remembered there spares work, and its locks hold for all runs of this user. A hash
    that somebody else wrote would have a file taken for one that is stored. Raises ConfigError
    where a home or a place is missing; what was set and cannot be made is left to whoever writes
    there.
    """
    is_set = config.origin(_KEY) != "default"
    with suppress(*(() if is_set else (ConfigError, OSError))):
        folder = expanded(config.state.cache_dir) / name
        if _is_believed(folder):
            made = _private(folder) if is_set else _made(folder)
            if _is_believed(made):
                return made
    for parent in filter(None, (system_folder(), _MEMORY)):
        base = parent / f"snapstore-{os.geteuid()}"
        with suppress(OSError):
            base.mkdir(mode=0o700, exist_ok=True)
            if _is_own(base):
                return _made(base / name)
    raise ConfigError(
        "there is no folder to remember things in: no home, and no temporary folder to write to",
        hint="set SNAPSTORE_CACHE_DIR",
        key=_KEY,
    )


def _is_believed(folder: Path) -> bool:
    """Whether only this user and root can have written what is in it; say it if not."""
    doubt = doubt_of(folder)
    if doubt is not None:
        _say(folder, doubt)
    return doubt is None


@cache
def _say(folder: Path, doubt: Doubt) -> None:
    """Warn of a folder once in a process."""
    remedy = doubt.remedy or f"set {_KEY} to a folder of user {os.geteuid()}"
    _LOG.warning("%s is not used as %s: %s; %s", folder, _KEY, doubt.why, remedy)


def scratch_folder(config: Config) -> Path | None:
    """Return where stores are brought to for a look: None is the system's temporary folder.

    Where that cannot be written, ``state.cache_dir`` stands in for it, if this user can write there
    and nobody else; never memory, which a store may fill.
    """
    if system_folder() is not None:
        return None
    with suppress(ConfigError, OSError):
        folder = expanded(config.state.cache_dir) / "scratch"
        if _is_believed(folder) and _is_believed(_made(folder)):
            return folder
    return None


def _private(folder: Path) -> Path:
    with suppress(OSError):
        return _made(folder)
    return folder


def _made(folder: Path) -> Path:
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        # Older versions made it as the umask said.
        folder.chmod(0o700)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(folder)
    return folder


def _is_own(folder: Path) -> bool:
    """Whether nobody else made it, or can write there."""
    status = folder.lstat()
    mode = status.st_mode
    return stat.S_ISDIR(mode) and status.st_uid == os.geteuid() and not mode & 0o022

"""Where this host remembers things from one run to the next: hashes, locks, rates, origins."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from snapstore.config import Config
from snapstore.errors import ConfigError
from snapstore.model.home import expanded
from snapstore.model.temporary import system_folder

_KEY = "state.cache_dir"
_MEMORY = Path("/dev/shm")


def own_cache(config: Config, name: str) -> Path:
    """Return the folder of that name below ``state.cache_dir``, which only this user can read.

    Where that was not set and cannot be made (no home, a root file system that is read-only), a
    folder in the system's temporary one or in memory stands in for it: what is remembered there
    spares work, and its locks hold for all runs of this user. Raises ConfigError where a home or a
    place is missing; what was set and cannot be made is left to whoever writes there.
    """
    if config.origin(_KEY) != "default":
        return _private(expanded(config.state.cache_dir) / name)
    with suppress(ConfigError, OSError):
        return _made(expanded(config.state.cache_dir) / name)
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

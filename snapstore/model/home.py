"""Paths that begin with `~`, on hosts where nobody has a home, too."""

from pathlib import Path

from snapstore.errors import ConfigError


def expanded(path: Path | str) -> Path:
    """Return the path with `~` and `~user` replaced.

    Raises ConfigError where HOME is not set and the user has no entry in the user database, as in
    a container that runs under a uid of its own.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as exc:
        raise ConfigError(
            f"{path}: the home directory of this user is not known",
            hint="write the path in full, or set HOME",
            path=str(path),
        ) from exc

"""Where the folder of a local repository is, and which file belongs to a key."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from snapstore.errors import ConfigError, UnsafePathError
from snapstore.model.home import expanded

UNFINISHED = ".unfinished"
RESERVE = ".reserve"
OWN = (UNFINISHED, RESERVE)
"""Folders of the repository's that hold no objects."""


def root_of(url: str) -> Path:
    """Return the absolute folder that a ``file://`` URL or a path names; raises ConfigError."""
    if "\0" in url:
        raise ConfigError(f"{url!r} names no path")
    try:
        if "://" not in url:
            return expanded(url).absolute()
        parts = urlsplit(url)
    except (RuntimeError, ValueError) as error:
        # No such user after ~; brackets that are no address.
        raise ConfigError(f"{url!r} names no path: {error}", url=url) from error
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        raise ConfigError(
            f"{url} is not a local folder", hint="write file:///path, with three slashes", url=url
        )
    if parts.query or parts.fragment:
        raise ConfigError(
            f"{url} holds ? or #", hint="write them as %3F and %23, or give a plain path", url=url
        )
    path = unquote(parts.path)
    if not path.startswith("/") or "\0" in path:
        raise ConfigError(f"{url} names no absolute path", url=url)
    return Path(path)


def file_of(root: Path, key: str) -> Path:
    """Return the file of a key.

    Raises UnsafePathError for a key that leads elsewhere, or to where the storage keeps its own.
    """
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in key or parts[0] in OWN:
        raise UnsafePathError("this key cannot be a file of the repository", key=key)
    return root.joinpath(*parts)

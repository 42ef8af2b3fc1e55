"""Write a file so that it is there whole under its name, or not at all, also after a power cut."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from snapstore.errors import ConfigError, RepositoryNotFoundError
from snapstore.storages.local.claim import claim

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


class UnfinishedFile:
    """A complete file that has no final name yet, and is made durable before it gets one."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def publish_new(self, final: Path) -> bool:
        """Give it its name; False, and nothing changed, when the name is taken."""
        os.fsync(self._fd)
        ensure_folder(final.parent)
        won = claim(self.path, final)
        if won:
            sync_folder(final.parent)
        return won

    def publish_over(self, final: Path) -> None:
        """Give it its name in place of whatever has it."""
        os.fsync(self._fd)
        ensure_folder(final.parent)
        self.path.replace(final)
        sync_folder(final.parent)


@contextmanager
def written(folder: Path, chunks: Iterable[bytes]) -> Iterator[UnfinishedFile]:
    """Write ``chunks`` to a new file of ``folder``; leaving removes what is left of it there.

    Whatever ``chunks`` raises passes through, and nothing stays.
    """
    ensure_folder(folder)
    path = folder / os.urandom(16).hex()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
    try:
        for chunk in chunks:
            _write_all(fd, chunk)
        yield UnfinishedFile(path, fd)
    finally:
        os.close(fd)
        path.unlink(missing_ok=True)


def ensure_root(root: Path) -> None:
    """Create the repository's own folder; its parent must be there.

    A parent that is missing is more often a disk that is not mounted than a wish, so it raises
    RepositoryNotFoundError; ConfigError where a file has one of the names.
    """
    try:
        root.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        require_folder(root)
        return
    except NotADirectoryError:
        require_folder(root.parent)
        raise
    except FileNotFoundError as error:
        raise RepositoryNotFoundError(
            f"the folder {root.parent} does not exist",
            hint="mount the disk, or make the folder",
            path=str(root.parent),
        ) from error
    sync_folder(root.parent)


def require_folder(path: Path) -> None:
    """Raise ConfigError when there is something else than a folder."""
    if path.exists() and not path.is_dir():
        raise ConfigError(
            f"{path} is not a folder, and a local repository is one",
            hint="name a folder, or one that can be made",
            path=str(path),
        )


def ensure_folder(folder: Path) -> None:
    """Create a folder below one that is there, each name made durable on the way."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        ensure_folder(folder.parent)
    try:
        folder.mkdir(mode=_FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(
                errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)
            ) from None
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        # Some FUSE and CIFS mounts cannot sync a folder; they answer EINVAL or ENOTSUP.
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(fd)


def _write_all(fd: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(fd, view) :]

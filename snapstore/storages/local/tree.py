"""The folders of a repository, reached by descriptors: nothing below its root may be a link.

Whoever may write into a folder of the repository can put a link there at any time. So an object is
opened, named and removed relative to the descriptor of its folder. The root itself may be a link.
"""

import errno
import os
from pathlib import Path
from typing import NamedTuple

from snapstore.errors import ConfigError, RepositoryNotFoundError, UnsafePathError
from snapstore.model.folder import Folder, LinkError, NotFolderError
from snapstore.storages.local.location import UNFINISHED

_FOLDER_MODE = 0o700
_ROOT = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_SYNCED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CANNOT_SYNC = (errno.EINVAL, errno.EOPNOTSUPP)
"""What some FUSE and CIFS mounts answer to the sync of a folder."""


class Name(NamedTuple):
    """A name in a folder that is open."""

    folder: Folder
    name: str

    @property
    def path(self) -> Path:
        return self.folder.path / self.name


class Tree:
    """The root of a repository and what is below.

    Methods raise OSError, and UnsafePathError where a link has the name of a folder or file.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Folder:
        """Open a folder below the root, or the root itself if ``name`` is empty."""
        with Folder(os.open(self.root, _ROOT), self.root) as root:
            return _below(root, name)

    def made(self, name: str) -> Folder:
        """Open a folder below the root; what is missing is made, each name durable on the way."""
        try:
            return self.folder(name)
        except FileNotFoundError:
            folder = self.folder("")
        for part in name.split("/"):
            with folder as parent:
                try:
                    folder, _ = parent.make(part, _FOLDER_MODE)
                except LinkError as error:
                    raise linked(parent.path / part) from error
                except NotFolderError as error:
                    raise not_a_directory(parent.path / part) from error
                sync_folder(parent)
        return folder

    def look(self, key: str) -> os.stat_result | None:
        """Return what has a key, a link being itself; None if nothing has it."""
        parent, _, name = key.rpartition("/")
        try:
            with self.folder(parent) as folder:
                return folder.look(name)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open_file(self, key: str) -> int:
        """Return a descriptor of the regular file of a key."""
        parent, _, name = key.rpartition("/")
        with self.folder(parent) as folder:
            try:
                return folder.open_file(name, is_known=self._is_being_published)
            except LinkError as error:
                raise linked(folder.path / name) from error

    def ensure_root(self) -> None:
        """Create the root; its parent must be there.

        A parent that is missing is more often a disk that is not mounted than a wish, so it raises
        RepositoryNotFoundError; ConfigError where a file has one of the names.
        """
        if self.root.is_dir():
            return
        try:
            self.root.mkdir(mode=_FOLDER_MODE)
        except FileExistsError:
            require_folder(self.root)
            return
        except NotADirectoryError:
            require_folder(self.root.parent)
            raise
        except FileNotFoundError as error:
            raise RepositoryNotFoundError(
                f"the folder {self.root.parent} does not exist",
                hint="mount the disk, or make the folder",
                path=str(self.root.parent),
            ) from error
        fd = os.open(self.root.parent, _SYNCED)
        with Folder(fd, self.root.parent) as parent:
            sync_folder(parent)

    def _is_being_published(self, fd: int) -> bool:
        """Whether all names of a file but one are among the unfinished: it has just got its key."""
        before = os.fstat(fd)
        try:
            with self.folder(UNFINISHED) as folder:
                found = [folder.look(name) for name in folder.names()]
        except FileNotFoundError:
            found = []
        same = [each for each in found if each and os.path.samestat(each, before)]
        names = os.fstat(fd).st_nlink
        return names == 1 or names == before.st_nlink == 1 + len(same)


def sync_folder(folder: Folder) -> None:
    """Make the names in a folder durable."""
    try:
        os.fsync(folder.fd)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def require_folder(path: Path) -> None:
    """Raise ConfigError when there is something else than a folder."""
    if path.exists() and not path.is_dir():
        raise ConfigError(
            f"{path} is not a folder, and a local repository is one",
            hint="name a folder, or one that can be made",
            path=str(path),
        )


def linked(path: Path) -> UnsafePathError:
    """Return the error for a link somewhere below the root."""
    return UnsafePathError(
        f"refused: {path} is a symbolic link, and below the root of a repository there may be none",
        hint="move what it leads to into its place, or move the link away",
        path=str(path),
    )


def _below(root: Folder, name: str) -> Folder:
    try:
        return root.below(name)
    except LinkError as error:
        raise linked(Path(str(error.facts["path"]))) from error
    except NotFolderError as error:
        raise not_a_directory(Path(str(error.facts["path"]))) from error


def not_a_directory(path: Path) -> NotADirectoryError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

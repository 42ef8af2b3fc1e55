"""Folders that are held by a descriptor, so that nobody can put something else in their place.

A path is looked up anew at each use: whoever may write into one of its folders can put a link there
in between. So a folder in which somebody else may write is opened once, name by name and never
through a link, and what is done in it is done relative to its descriptor.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Self

from snapstore.errors import ConfigError, UnsafePathError

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_DESCRIPTORS = Path("/proc/self/fd")
_HERE = re.compile(r"/proc/self/fd/(\d+)")
_TRIES = 100


class LinkError(UnsafePathError):
    """A symbolic link has the name."""


class NotFolderError(UnsafePathError):
    """A file, a pipe, a socket or a device has the name of a folder."""


class Folder:
    """A folder of which a descriptor is open; ``path`` is how it was called, for messages.

    Methods raise OSError, and UnsafePathError where something else than a folder has the name.
    """

    def __init__(self, fd: int, path: Path) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder by its absolute path, in which no name may be a link."""
        root = cls(os.open("/", _FOLDER), Path("/"))
        with root:
            return root.below("/".join(path.parts[1:]))

    @classmethod
    def reach(cls, root: Path, path: Path) -> Self:
        """Open a folder below another one, or the one that holds that, through no link.

        Links that lead to ``root`` itself are followed: whoever named it meant what they lead to.
        Raises FileNotFoundError and UnsafePathError.
        """
        start, name = way(root, path)
        with cls.open(start) as folder:
            return folder.below(name)

    def below(self, name: str) -> Self:
        """Open a folder below this one, name by name; ``name`` may be empty for this one itself."""
        *steps, last = name.split("/") if name else ["."]
        step, path = self.fd, self.path
        try:
            for part in steps:
                path /= part
                inner = _opened(part, _STEP, step, path)
                if step != self.fd:
                    os.close(step)
                step = inner
            path /= last
            return type(self)(_opened(last, _FOLDER, step, path), path)
        finally:
            if step != self.fd:
                os.close(step)

    def make(self, name: str, mode: int = 0o700) -> tuple[Self, bool]:
        """Open a folder in this one, or make it; True if it was made.

        Others may make and remove it meanwhile.
        """
        for tries_left in reversed(range(_TRIES)):
            made = True
            try:
                os.mkdir(name, mode, dir_fd=self.fd)
            except FileExistsError:
                made = False
            try:
                return self.below(name), made
            except FileNotFoundError:
                if not tries_left:
                    raise
        raise AssertionError

    @property
    def here(self) -> Path:
        """A path to this folder by its descriptor, for code that knows only paths.

        Not for child processes. Raises ConfigError where there is no /proc.
        """
        path = _DESCRIPTORS / str(self.fd)
        if not path.exists():
            raise ConfigError(
                "/proc is not mounted, and without it no folder is safe from others",
                hint="mount /proc where snapstore runs",
            )
        return path

    def status(self) -> os.stat_result:
        return os.fstat(self.fd)

    def look(self, name: str) -> os.stat_result | None:
        """Return what has a name in this folder, a link being itself; None if nothing has it."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def holds_folder(self, name: str) -> bool:
        """Raises UnsafePathError when something else than a folder has the name."""
        status = self.look(name)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            raise _no_folder(self.path / name)
        return status is not None

    def names(self) -> list[str]:
        return sorted(os.listdir(self.fd))  # noqa: PTH208 - of a descriptor

    def open_file(self, name: str, *, is_known: Callable[[int], bool] | None = None) -> int:
        """Return a descriptor of a regular file somewhere below, opened name by name.

        Raises UnsafePathError for anything else, and as root for a second name of a file that
        whoever may write into its folder could not read, unless ``is_known`` knows all the names
        that the file of a descriptor has.
        """
        parent, _, last = name.rpartition("/")
        with self.below(parent) if parent else nullcontext(self) as folder:
            path = folder.path / last
            fd = _opened(last, _FILE, folder.fd, path)
            found = os.fstat(fd)
            is_root = found.st_nlink > 1 and os.geteuid() == 0
            belongs = not is_root or _belongs(found, folder.status())
        why = None
        if not stat.S_ISREG(found.st_mode):
            why = "is not a regular file"
        elif not belongs and not (is_known and is_known(fd)):
            why = f"is a hard link to a file of user {found.st_uid}"
        if why is None:
            return fd
        os.close(fd)
        raise UnsafePathError(f"refused: {path} {why}", hint="move it away", path=str(path))

    def link_file(self, name: str, target: Path) -> None:
        """Give the very file that ``open_file`` opens a second name."""
        fd = self.open_file(name)
        try:
            # With a folder given, Python lets the kernel follow the link that /proc has.
            os.link(_DESCRIPTORS / str(fd), target, src_dir_fd=self.fd, follow_symlinks=True)
        finally:
            os.close(fd)

    def link_special(self, name: str, target: Path) -> None:
        """Give a pipe or a socket a second name. Raises UnsafePathError for a link."""
        parent, _, last = name.rpartition("/")
        with self.below(parent) as folder:
            os.link(last, target, src_dir_fd=folder.fd, follow_symlinks=False)
            if target.is_symlink():
                target.unlink()
                raise _link(folder.path / last)

    def walk(self, name: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Yield everything below a folder with its relative name, each folder before what it holds.

        Nothing where the folder is not there, or is gone.
        """
        waiting = [name]
        while waiting:
            parent = waiting.pop()
            try:
                with self.below(parent) as folder:
                    found = [(each, folder.look(each)) for each in folder.names()]
            except FileNotFoundError:
                continue
            folders = []
            for each, status in found:
                if status is None:
                    continue
                inner = f"{parent}/{each}" if parent else each
                yield inner.removeprefix(f"{name}/") if name else inner, status
                if stat.S_ISDIR(status.st_mode):
                    folders.append(inner)
            waiting += reversed(folders)

    def move(self, name: str, to: "Folder", new_name: str) -> None:
        """Rename without following a link, and make it durable."""
        os.rename(name, new_name, src_dir_fd=self.fd, dst_dir_fd=to.fd)
        to.sync()
        self.sync()

    def remove_tree(self, name: str) -> None:
        """Remove what has a name in this folder, with all that is below; a link goes by itself."""
        status = self.look(name)
        if status is None:
            return
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=self.fd)
            return
        try:
            shutil.rmtree(name, dir_fd=self.fd)
        except RecursionError:
            self._remove_deep(name)

    def _remove_deep(self, name: str) -> None:
        """Remove folders that lie deeper in one another than Python calls functions."""
        folders = [name]
        for inner, status in self.walk(name):
            if stat.S_ISDIR(status.st_mode):
                folders.append(f"{name}/{inner}")
        for each in reversed(folders):
            with self.below(each) as folder:
                for inner in folder.names():
                    folder.remove_tree(inner)
            parent, _, last = each.rpartition("/")
            with self.below(parent) as folder:
                os.rmdir(last, dir_fd=folder.fd)

    def remove_if_empty(self, name: str) -> None:
        try:
            os.rmdir(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise

    def sync(self) -> None:
        os.fsync(self.fd)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def way(root: Path, path: Path) -> tuple[Path, str]:
    """Return from where on no link is followed on the way to a folder, and its name from there."""
    resolved = root.resolve()
    for start in (root, resolved):
        if path == start.parent and path != start:
            return resolved.parent, ""
        if path.is_relative_to(start):
            name = path.relative_to(start)
            return resolved, "" if name == Path() else str(name)
    raise UnsafePathError(
        f"refused: {path} does not lie in {root}", target=str(root), path=str(path)
    )


def shown(text: str) -> str:
    """Return a text in which paths by a descriptor are the names that their folders have."""

    def name(found: re.Match[str]) -> str:
        try:
            return str(Path(found.group()).readlink())
        except OSError:
            return found.group()

    return _HERE.sub(name, text)


def _opened(name: str, flags: int, folder: int, path: Path) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _link(path) from error
        if error.errno == errno.ENOTDIR:
            # Linux says so of a link, too.
            raise (_link(path) if _is_link(name, folder) else _no_folder(path)) from error
        error.filename = str(path)
        raise


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link(path: Path) -> LinkError:
    return LinkError(
        f"refused: {path} is a symbolic link",
        hint="name the directory it points to as the target, or move the link away",
        path=str(path),
    )


def _belongs(file: os.stat_result, folder: os.stat_result) -> bool:
    """Whether whoever may write into a folder was free to put a file there."""
    if file.st_nlink == 1 or file.st_uid == folder.st_uid != 0:
        return True
    if file.st_gid == folder.st_gid != 0:
        return True
    return folder.st_uid == 0 and not folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _no_folder(path: Path) -> NotFolderError:
    return NotFolderError(
        f"refused: {path} is not a directory", hint="move it away", path=str(path)
    )

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
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from snapstore.errors import ConfigError, UnsafePathError

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
_DESCRIPTORS = Path("/proc/self/fd")
_HERE = re.compile(r"/proc/self/fd/(\d+)")
_TRIES = 100


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

    def below(self, name: str) -> Self:
        """Open a folder below this one, name by name; ``name`` may be empty for this one itself."""
        parts = name.split("/") if name else []
        step, path = os.dup(self.fd), self.path
        try:
            for part in parts:
                path /= part
                inner = _opened(part, _STEP, step, path)
                os.close(step)
                step = inner
            return type(self)(_opened(".", _FOLDER, step, path), path)
        finally:
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

    def open_file(self, name: str) -> int:
        """Return a descriptor of a regular file somewhere below, opened name by name."""
        parent, _, last = name.rpartition("/")
        with self.below(parent) as folder:
            path = folder.path / last
            fd = _opened(last, _FILE, folder.fd, path)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise UnsafePathError(f"refused: {path} is not a regular file", path=str(path))

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
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=self.fd)
        else:
            os.unlink(name, dir_fd=self.fd)

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
            raise UnsafePathError(
                f"refused: {path} is a symbolic link",
                hint="name the directory it points to as the target, or move the link away",
                path=str(path),
            ) from error
        if error.errno == errno.ENOTDIR:
            raise _link_or_file(name, folder, path) from error
        error.filename = str(path)
        raise


def _link_or_file(name: str, folder: int, path: Path) -> UnsafePathError:
    """A link in place of a folder is told as ENOTDIR by open(2)."""
    try:
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        is_link = False
    if not is_link:
        return _no_folder(path)
    return UnsafePathError(
        f"refused: {path} is a symbolic link",
        hint="name the directory it points to as the target, or move the link away",
        path=str(path),
    )


def _no_folder(path: Path) -> UnsafePathError:
    return UnsafePathError(
        f"refused: {path} is not a directory", hint="move it away", path=str(path)
    )

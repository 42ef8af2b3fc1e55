"""A database cut into ranges of pages, so that a small change is a small upload.

SQLite changes pages in place, so the same range of two captures has the same bytes unless something
in it changed, and the repository stores the same bytes once. A capture consists of::

    STORE/pages.json        {"format": 1, "size": 1310720, "range_bytes": 262144}
    STORE/pages/00000000    the first range, and so on

and becomes ``STORE/state.db`` again when it is installed.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from snapstore.errors import NoSpaceError, SourceDamagedError, UnsafePathError
from snapstore.model.store import BytesSource, CapturedFile
from snapstore_sqlite.store import DATABASE

PLAN = "pages.json"
FOLDER = "pages"
FORMAT = 1

_MODE = 0o640
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


class PagePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the bytes of a database are cut."""

    format: int
    size: Annotated[int, msgspec.Meta(gt=0)]
    range_bytes: Annotated[int, msgspec.Meta(gt=0)]

    def ranges(self) -> list[tuple[str, int, int]]:
        """Return name, position and size of each part."""
        return [
            (f"{number:08d}", start, min(self.range_bytes, self.size - start))
            for number, start in enumerate(range(0, self.size, self.range_bytes))
        ]


class RangeSource:
    """Some bytes of a file that nobody changes; opened for each read, so it holds nothing."""

    def __init__(self, path: Path, start: int, size: int) -> None:
        self._path = path
        self._start = start
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def pread(self, length: int, position: int) -> bytes:
        wanted = max(0, min(length, self._size - position))
        with self._path.open("rb", buffering=0) as file:
            return os.pread(file.fileno(), wanted, self._start + position)


def cut(copy: Path, root: str, range_bytes: int) -> tuple[CapturedFile, ...]:
    """Return the files of a capture whose database was copied to ``copy``."""
    plan = PagePlan(format=FORMAT, size=copy.stat().st_size, range_bytes=range_bytes)
    parts = [
        CapturedFile(
            name=below(root, f"{FOLDER}/{name}"),
            mode=_MODE,
            source=RangeSource(copy, start, size),
        )
        for name, start, size in plan.ranges()
    ]
    source = BytesSource(msgspec.json.encode(plan))
    return (
        *parts,
        CapturedFile(name=below(root, PLAN), mode=_MODE, source=source, inline=True),
    )


def is_cut(folder: Path) -> bool:
    """Whether a store is as a capture left it, and not yet as its application opens it."""
    return (folder / PLAN).exists()


def join(folder: Path, target: Path) -> None:
    """Put the ranges together as ``target``; whole or not at all.

    Raises SourceDamagedError when one is missing or too short, and NoSpaceError.
    """
    plan = _read_plan(folder / PLAN)
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as output:
            for name, _, size in plan.ranges():
                _append(folder / FOLDER / name, size, output)
            output.flush()
            os.fsync(output.fileno())
        part.rename(target)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise NoSpaceError(f"no space left in {target.parent}", path=str(target)) from error
        raise
    finally:
        part.unlink(missing_ok=True)


def install(folder: Path) -> None:
    """Make the database of the ranges in its folder, and remove them; again does no harm.

    The plan goes first: what is left behind it is no store, and a whole one is never joined anew.
    """
    if is_cut(folder):
        join(folder, folder / DATABASE)
        (folder / PLAN).unlink()
    if (folder / FOLDER).exists():
        shutil.rmtree(folder / FOLDER)


def below(root: str, name: str) -> str:
    """Return the name of a file of the store relative to its task directory."""
    return name if root == "." else f"{root}/{name}"


def check_root(root: str) -> None:
    """Raise UnsafePathError for a folder that leads elsewhere or has a hostile name."""
    parts = root.split("/")
    if root != "." and ({"", ".", ".."} & set(parts) or not root.isprintable()):
        raise UnsafePathError(f"refused: {root!r} is no folder of a store", root=root)


def _read_plan(path: Path) -> PagePlan:
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=PagePlan)
    except msgspec.MsgspecError as error:
        raise SourceDamagedError(f"{path}: {error}", path=str(path)) from error
    if plan.format != FORMAT:
        raise SourceDamagedError(
            f"{path} has format {plan.format}, and only {FORMAT} is known", path=str(path)
        )
    return plan


def _append(path: Path, size: int, output: BinaryIO) -> None:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise SourceDamagedError(f"{path} is missing", path=str(path)) from error
    if len(content) != size:
        raise SourceDamagedError(
            f"{path} holds {len(content)} bytes instead of {size}", path=str(path)
        )
    output.write(content)

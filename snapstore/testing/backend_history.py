"""The stores that the backend contract works with: one history, and who applies it."""

from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from snapstore.model.digest import entries_digest
from snapstore.model.store import CapturedFile, StoreLocation
from snapstore.ports import Capture, StoreView

_KEYS = 997


class Operation(msgspec.Struct, frozen=True):
    """A put, or a deletion (``value`` None)."""

    key: bytes
    value: bytes | None


def operation(number: int) -> Operation:
    """Return that operation of the history, counted from 0."""
    key = b"key-%05d" % (number * 7919 % _KEYS)
    if number % 11 == 10:
        return Operation(key, None)
    return Operation(key, b"value-%d-" % number + b"." * 100)


def replay(contents: dict[bytes, bytes], first: int, last: int) -> dict[bytes, bytes]:
    """Return the contents after the operations from ``first`` to ``last``, both included."""
    after = dict(contents)
    for number in range(first, last + 1):
        done = operation(number)
        if done.value is None:
            after.pop(done.key, None)
        else:
            after[done.key] = done.value
    return after


class Writer(Protocol):
    """An application at work on a store, in a process of its own."""

    location: StoreLocation

    def begun(self) -> int:
        """Return a number that no operation begun so far exceeds."""
        ...

    def crash(self) -> None:
        """End it at once, as SIGKILL does."""
        ...


class StoreMaker(Protocol):
    """Makes real stores of one type, below a task directory that exists."""

    exact: bool
    """Whether a store never holds operations after the number that it has noted."""

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        """Make a store that holds the operations up to ``applied``, and close it."""
        ...

    def extend(self, location: StoreLocation, applied: int) -> None:
        """Go on with a closed store up to ``applied``, and close it again."""
        ...

    def writing(self, task_dir: Path) -> AbstractContextManager[Writer]:
        """Run an application that goes through the history from 0, until the block is left."""
        ...

    def applied(self, view: StoreView) -> int | None:
        """Return the number that the store has noted; None before the first."""
        ...

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        """Return what the store holds of the history."""
        ...


def materialise(capture: Capture, target: Path) -> None:
    """Write the files of a capture into another task directory, as a restore would."""
    for file in capture.files:
        path = target / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read_whole(file))


def read_whole(file: CapturedFile) -> bytes:
    """Read a captured file in pieces, as an upload does."""
    pieces = []
    position = 0
    while position < file.size:
        piece = file.source.pread(1 << 16, position)
        assert piece, f"{file.name} ends after {position} of {file.size} bytes"
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def digests_of(view: StoreView) -> dict[tuple[str, str], str]:
    """Return the digest of every family of every database."""
    return {
        (database, family): entries_digest(view.scan(database, family))
        for database in view.databases
        for family in view.families(database)
    }


def open_files() -> list[str]:
    """Return what this process has open: files, folders and pipes.

    Connections are left out, which servers in other threads of the process open and close.
    """
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return sorted(each for each in found if not each.startswith("socket:"))


def look_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return what must not change in a source: names, inodes, sizes and times."""
    look = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        look[str(path.relative_to(folder))] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return look

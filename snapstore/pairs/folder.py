"""The pair files of one folder: open those that are the store, and add one."""

import errno
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from snapstore.errors import (
    BlobMissingError,
    CaptureError,
    ManifestInvalidError,
    NoSpaceError,
    StoreChangedError,
)
from snapstore.model.pinned import PinnedFile
from snapstore.pairs.chain import chain_of, living, newest_of_each
from snapstore.pairs.decode import PairFile, read_pairs, read_summary
from snapstore.pairs.encode import encode
from snapstore.pairs.header import PairHeader
from snapstore.ports import Pair

_NAME = re.compile(r"[0-9]{12}-(base|delta)\.pairs")
_TEMPORARY = ".new.pairs"
_ATTEMPTS = 8
_FIRST_PAUSE_S = 0.001
_FULL = {errno.ENOSPC, errno.EDQUOT}

Reached = Callable[[str], None]


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A pair file whose bytes stay readable whatever becomes of its name."""

    name: str
    pinned: PinnedFile
    summary: PairFile

    def pairs(self) -> Iterator[Pair]:
        """Yield its pairs; raises as ``read_pairs``."""
        return read_pairs(self.pinned, self.name)


def is_pair_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


@contextmanager
def opened(folder: Path) -> Iterator[tuple[OpenFile, ...]]:
    """Hold the files that are the store now open, the base first; none where there is no store.

    Raises CaptureError for a link or anything else in place
    of a file, StoreChangedError when it kept changing, and IntegrityError for damaged files.
    """
    before: list[str] = []
    for attempt in range(_ATTEMPTS):
        with ExitStack() as stack:
            names = sorted(_names(folder))
            try:
                files = [_open(folder, name, stack) for name in names]
                chain = {file.id for file in chain_of(file.summary for file in files)}
            except (FileNotFoundError, BlobMissingError) as error:
                # A new base may have taken the place of what was listed, or the store is removed.
                if attempt < _ATTEMPTS - 1:
                    before = names
                    time.sleep(_FIRST_PAUSE_S * 2**attempt)
                    continue
                if isinstance(error, BlobMissingError) and names == before:
                    raise
                raise StoreChangedError(
                    f"files kept coming and going in {folder}", path=str(folder)
                ) from error
            chosen = sorted(
                (file for file in files if file.summary.id in chain), key=lambda file: file.name
            )
            yield tuple(chosen)
            return


def merged(files: Sequence[OpenFile]) -> Iterator[tuple[bytes, bytes]]:
    """Yield what the store holds, in key order; raises IntegrityError."""
    return living(newest_of_each([file.pairs() for file in files])) if files else iter(())


def next_number(folder: Path) -> int:
    """Return a number greater than that of every file in the folder."""
    return max((int(name[:12]) for name in _names(folder)), default=0) + 1


def add(
    folder: Path, header: PairHeader, pairs: Iterable[Pair], *, reached: Reached = lambda _: None
) -> PairFile:
    """Write a file under a temporary name, make it durable, then give it its name.

    ``reached`` is called at named points of the work. Raises NoSpaceError.
    """
    path, temporary = folder / header.name, folder / _TEMPORARY
    count = size = 0
    last = b""

    def counted() -> Iterator[Pair]:
        nonlocal count
        for pair in pairs:
            count += 1
            yield pair

    with writing(path):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o640)
        with os.fdopen(fd, "wb") as output:
            for last in encode(header, counted()):
                output.write(last)
                size += len(last)
                reached("piece written")
            output.flush()
            os.fsync(output.fileno())
        reached("file complete")
        temporary.rename(path)
        reached("file named")
        sync_folder(folder)
        reached("name durable")
    return PairFile(header=header, id=last.hex(), pairs=count, size=size)


def remove_leftovers(folder: Path, chain: Iterable[PairFile]) -> None:
    """Remove the pair files that the store does not need any more."""
    needed = {file.header.name for file in chain}
    with writing(folder):
        for name in sorted(_names(folder)):
            if name not in needed:
                (folder / name).unlink()
        (folder / _TEMPORARY).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if is_pair_file(name)]  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CaptureError(
            f"{folder} cannot be listed: {error.strerror}", path=str(folder)
        ) from error


def _open(folder: Path, name: str, stack: ExitStack) -> OpenFile:
    pinned = PinnedFile(str(folder / name))
    stack.callback(pinned.close)
    summary = read_summary(pinned, name)
    if summary.header.name != name:
        raise ManifestInvalidError(f"{name} calls itself {summary.header.name}", file=name)
    return OpenFile(name=name, pinned=pinned, summary=summary)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into NoSpaceError or CaptureError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoSpaceError(
                f"the disk is full: {path} cannot be written", path=str(path)
            ) from error
        raise CaptureError(f"{path} cannot be written: {error.strerror}", path=str(path)) from error

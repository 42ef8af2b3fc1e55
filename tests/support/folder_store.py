"""A store type of our own for tests: any files in one folder, taken as they are.

Real enough to be a plug-in, and every byte of it is under a test's control.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from snapstore.errors import StoreChangedError, StoreNotFoundError
from snapstore.layouts.plain import SIDE_FILE, PlainLayout, PlainOptions
from snapstore.model.store import (
    BytesSource,
    CapturedFile,
    DescriptorSource,
    FileIdentity,
    StoreLocation,
)
from snapstore.ports import StoreView


class FolderView:
    """No database to look into."""

    databases: tuple[str, ...] = ()

    def families(self, database: str) -> tuple[str, ...]:
        raise KeyError(database)

    def entries(self, database: str, family: str) -> Mapping[bytes, bytes]:
        raise KeyError(database, family)

    def scan(self, database: str, family: str) -> Iterator[tuple[bytes, bytes]]:
        raise KeyError(database, family)


class FolderCapture:
    """Open files; ``released`` names those that were let go of, in order."""

    view: StoreView = FolderView()

    def __init__(self, files: tuple[CapturedFile, ...]) -> None:
        self.files = files
        self.released: list[str] = []

    def release(self, file: CapturedFile) -> None:
        self.released.append(file.name)


class FolderBackend:
    """Implements StoreBackend; ``captures`` keeps every capture that was made."""

    name: str = "folder"

    def __init__(self) -> None:
        self.captures: list[FolderCapture] = []

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[FolderCapture]:
        opened: list[int] = []
        try:
            capture = FolderCapture(tuple(_open_all(location, opened)))
            if not capture.files:
                raise StoreNotFoundError(f"no state in {location.path}")
            self.captures.append(capture)
            yield capture
        finally:
            for fd in opened:
                os.close(fd)

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[StoreView]:
        assert (task_dir / root).is_dir()
        yield FolderView()

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        raise KeyError(database, family, entries)


def folder_layout(store: str = "counts", application: str = "orders") -> PlainLayout:
    return PlainLayout(
        PlainOptions(application=application, task="0", store=store, backend="folder")
    )


def write_store(folder: Path, files: Mapping[str, bytes], applied_offset: int) -> Path:
    """Write files of a store, old enough for their hashes to be remembered, and its offset."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    position = {"topic": "orders-counts", "partition": 0, "applied_offset": applied_offset}
    (folder / SIDE_FILE).write_bytes(msgspec.json.encode({"format": 1, "positions": [position]}))
    return folder


def _open_all(location: StoreLocation, opened: list[int]) -> Iterator[CapturedFile]:
    for path in sorted(location.path.iterdir()):
        if path.name == SIDE_FILE:
            yield CapturedFile(
                name=path.name, mode=0o644, source=BytesSource(path.read_bytes()), inline=True
            )
            continue
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise StoreChangedError(f"{path} was removed") from error
        opened.append(fd)
        status = os.fstat(fd)
        yield CapturedFile(
            name=path.name,
            mode=stat.S_IMODE(status.st_mode),
            source=DescriptorSource(fd, status.st_size),
            identity=FileIdentity(
                status.st_dev,
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
            ),
        )

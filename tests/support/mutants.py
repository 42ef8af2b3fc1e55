"""Backends that break one promise each: the contract must find every one of them out."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from snapstore.model.store import CapturedFile, StoreLocation
from snapstore.ports import Capture, StoreBackend, StoreView


class Mutant:
    """A backend that does what another one does."""

    def __init__(self, inner: StoreBackend) -> None:
        self.inner = inner
        self.name = inner.name

    def capture(self, location: StoreLocation) -> AbstractContextManager[Capture]:
        return self.inner.capture(location)

    def open_view(self, task_dir: Path, root: str) -> AbstractContextManager[StoreView]:
        return self.inner.open_view(task_dir, root)

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        self.inner.write_entries(database, family, entries)


class Altered:
    """A capture whose files or view are others than they should be."""

    def __init__(self, real: Capture, files: tuple[CapturedFile, ...], view: StoreView) -> None:
        self._real = real
        self.files = files
        self.view = view

    def release(self, file: CapturedFile) -> None:
        self._real.release(file)


class ReadsTheOffsetLast(Mutant):
    """What the store says of itself, its offset included, is read after its files."""

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[Capture]:
        with self.inner.capture(location) as files:
            time.sleep(0.3)
            with self.inner.capture(location) as later:
                yield Altered(files, files.files, later.view)


class LeavesAFileOut(Mutant):
    """The largest file is not taken."""

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[Capture]:
        with self.inner.capture(location) as real:
            largest = max(real.files, key=lambda file: file.size)
            yield Altered(real, tuple(file for file in real.files if file != largest), real.view)


class FollowsLinks(Mutant):
    """What a link leads to is taken for the store's own."""

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[Capture]:
        with TemporaryDirectory(prefix="followed-") as folder:
            followed = Path(folder) / "task"
            shutil.copytree(location.task_dir, followed, symlinks=False)
            with self.inner.capture(
                msgspec.structs.replace(location, task_dir=followed)
            ) as capture:
                yield capture


class TrustsTheFirstLook(Mutant):
    """Files are read one after the other, and nobody looks whether they changed meanwhile."""

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[Capture]:
        with TemporaryDirectory(prefix="looked-") as folder:
            copy = Path(folder) / "task"
            for path in sorted(location.path.rglob("*"), reverse=True):
                if path.is_file():
                    target = copy / path.relative_to(location.task_dir)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(path.read_bytes())
                    time.sleep(0.02)
            with self.inner.capture(msgspec.structs.replace(location, task_dir=copy)) as capture:
                yield capture

"""Pair files as a store type: hold them still, look into them, lay entries over them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import ClassVar

import msgspec

from snapstore.backends.memory.capture import MemoryCapture, side_files
from snapstore.backends.memory.damage import damage_of_the_source
from snapstore.backends.memory.view import MemoryView
from snapstore.backends.memory.writer import MemoryWriter
from snapstore.errors import StoreNotFoundError
from snapstore.model.folder_name import check_folder
from snapstore.model.store import StoreLocation
from snapstore.pairs.folder import OpenFile, opened


class MemoryOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """There is nothing to set."""


class MemoryBackend:
    """Implements StoreBackend and WritableBackend for folders of pair files.

    The store has one database, its folder, with the one family ``default``.
    """

    name: str = "memory"
    Options: ClassVar[type[MemoryOptions]] = MemoryOptions

    def __init__(self, options: MemoryOptions | None = None) -> None:
        del options

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[MemoryCapture]:
        """Hold the files open that are the store now; a writer may go on.

        Raises StoreNotFoundError, StoreChangedError, SourceDamagedError, UnsafePathError, or
        CaptureError for a link in place of a file.
        """
        check_folder(location.root)
        beside = side_files(location)
        with ExitStack() as held:
            files = _hold(location.task_dir / location.root, held)
            yield MemoryCapture(location.root, files, beside)

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[MemoryView]:
        """Look into a store; raises StoreNotFoundError, or SourceDamagedError naming the file."""
        check_folder(root)
        with ExitStack() as held:
            yield MemoryView(root, _hold(task_dir / root, held))

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Lay entries over the store, in one new file; the others stay as they are."""
        with closing(MemoryWriter(database.parent, database.name)) as writer:
            writer.write(database.name, {family: entries.items()})

    @contextmanager
    def open_writer(self, task_dir: Path, root: str) -> Iterator[MemoryWriter]:
        """Open a store for writing, all of it in memory; its folder need not be there.

        Leaving makes what was written durable, in one new file. Raises CaptureError, NoSpaceError.
        """
        check_folder(root)
        with closing(MemoryWriter(task_dir, root)) as writer:
            yield writer


def _hold(folder: Path, held: ExitStack) -> tuple[OpenFile, ...]:
    with damage_of_the_source():
        files = held.enter_context(opened(folder))
    if not files:
        raise StoreNotFoundError(f"no state in {folder}", path=str(folder))
    return files

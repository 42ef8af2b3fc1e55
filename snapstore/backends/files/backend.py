"""A folder of files as a store type."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from snapstore.backends.files.capture import FilesCapture, capture_files, nothing_there
from snapstore.backends.files.looking import UnsettledError, look, open_root
from snapstore.backends.files.options import FilesOptions
from snapstore.backends.files.own_file import OwnFile
from snapstore.backends.files.view import FilesView
from snapstore.errors import RefusedError, StoreChangedError
from snapstore.model.store import StoreLocation
from snapstore.model.temporary import temporary_folder

_SETTING = "backends.files.staging_dir"


class FilesBackend:
    """Implements StoreBackend for any folder of files; its entries can only be read.

    ``sleep`` takes seconds; ``draw`` returns a number from 0 up to 1, for the jitter between tries.
    """

    name: str = "files"
    Options: ClassVar[type[FilesOptions]] = FilesOptions

    def __init__(
        self,
        options: FilesOptions | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options = options if options is not None else FilesOptions()
        self._sleep = sleep
        self._draw = draw

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[FilesCapture]:
        """Hold all files as they were at one moment; leaving frees everything.

        Raises StoreNotFoundError when there is no state, StoreChangedError when it did not settle,
        CaptureError for what no snapshot can hold (links, devices, empty folders) and where a right
        is missing, NoSpaceError, or UnsafePathError.
        """
        with (
            temporary_folder(self._options.staging_dir, of="copies", setting=_SETTING) as room,
            ExitStack() as stack,
        ):
            yield capture_files(location, room, self._options, self._pause, stack)

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[FilesView]:
        """Look into a store that nobody writes to; raises StoreNotFoundError.

        Raises StoreChangedError where somebody does after all, CaptureError, or UnsafePathError.
        """
        try:
            with open_root(task_dir, root) as root_fd:
                found = look(root_fd, root, self._options)
        except FileNotFoundError as error:
            raise nothing_there(task_dir / root) from error
        except UnsettledError as error:
            raise StoreChangedError(
                f"{task_dir / root} changed while it was read: {error}", path=str(task_dir / root)
            ) from error
        if not found:
            raise nothing_there(task_dir / root)
        folder = task_dir / root
        yield FilesView(
            root, {name: OwnFile(folder / name, each.size) for name, each in found.items()}
        )

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Raise RefusedError: how this store notes an entry, only its own engine knows."""
        del family, entries
        raise RefusedError(
            f"{database} is a folder of files, into which no entries can be written",
            path=str(database),
        )

    def _pause(self, seconds: float) -> None:
        self._sleep(seconds * (0.5 + self._draw()))

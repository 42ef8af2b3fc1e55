"""RocksDB as a store type: hold a live store still, look into one, note entries in a staged one."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import ClassVar

from snapstore.backends.rocksdb.capture import RocksDBCapture, capture_store
from snapstore.backends.rocksdb.options import RocksDBOptions
from snapstore.backends.rocksdb.quiescent import open_store
from snapstore.backends.rocksdb.rooms import open_links, open_rooms
from snapstore.backends.rocksdb.view import RocksDBView
from snapstore.backends.rocksdb.writer import RocksDBWriter
from snapstore.backends.rocksdb.writing import write_family
from snapstore.model.store import StoreLocation


class RocksDBBackend:
    """Implements StoreBackend for folders that hold one RocksDB, or one for each segment.

    ``sleep`` takes seconds; ``draw`` returns a number from 0 up to 1, for the jitter between tries.
    """

    name: str = "rocksdb"
    Options: ClassVar[type[RocksDBOptions]] = RocksDBOptions

    def __init__(
        self,
        options: RocksDBOptions | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options = options if options is not None else RocksDBOptions()
        self._sleep = sleep
        self._draw = draw

    @contextmanager
    def capture(self, location: StoreLocation) -> Iterator[RocksDBCapture]:
        """Hold the store's files without the application's help; leaving frees everything.

        Raises StoreNotFoundError when there is no state, StoreChangedError when it did not settle,
        SourceDamagedError naming the file when it does not open, NoSpaceError, UnsafePathError, or
        CaptureError when a right is missing.
        """
        with open_rooms(self._options.staging_dir) as rooms, ExitStack() as stack:
            yield capture_store(location, rooms, self._options, self._pause, stack)

    @contextmanager
    def open_view(self, task_dir: Path, root: str) -> Iterator[RocksDBView]:
        """Look into a store that nobody writes to, through links: its folder stays as it is.

        Raises StoreNotFoundError, or SourceDamagedError naming the file when it does not open.
        """
        with open_links(self._options.staging_dir) as room, ExitStack() as stack:
            yield open_store(task_dir, root, room, stack)

    def write_entries(
        self, database: Path, family: str, entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Put (None: delete) entries of one family and flush them into a table of their own.

        A family that is missing is made, unless all entries are deletions. Every other table stays
        as it is, byte for byte.
        """
        write_family(database, family, entries)

    @contextmanager
    def open_writer(self, task_dir: Path, root: str) -> Iterator[RocksDBWriter]:
        """Open a store of snapstore's own, or one that its application is kept from, for writing.

        Leaving makes what was written durable. Raises CaptureError or NoSpaceError.
        """
        with closing(RocksDBWriter(task_dir, root)) as writer:
            yield writer

    def _pause(self, seconds: float) -> None:
        self._sleep(seconds * (0.5 + self._draw()))

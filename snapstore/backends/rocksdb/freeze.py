"""One attempt to hold one live database still, without its cooperation.

Tables are immutable, and deleting a file does not free it while it is open. The order is what
makes it right: hold every table, read CURRENT, copy the MANIFEST it names up to its size now, hold
the tables that are new, copy the write-ahead logs, and read CURRENT again. Each table that this
MANIFEST calls live was there before it, or came while it was read.

Logs are held before *and* after the MANIFEST is read: before, or one that is flushed meanwhile
would be missing; after, or the records behind the MANIFEST would be. A log that came and went in
between cannot be seen, but only after the MANIFEST has grown: then the attempt has failed.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from snapstore.backends.rocksdb import names
from snapstore.backends.rocksdb.copying import copy_bytes
from snapstore.backends.rocksdb.databases import Found, list_names
from snapstore.backends.rocksdb.held import Copy, Held, Pin, open_file
from snapstore.backends.rocksdb.unsupported import on_other_folders, refused
from snapstore.errors import CaptureError, SourceDamagedError
from snapstore.model.pinned import leads_to

_PLAIN_LIMIT_BYTES = 1 << 20


class UnsettledError(Exception):
    """The database changed under the reader, or is not complete (yet)."""

    def __init__(self, reason: str, file: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.file = file


class SourceState(msgspec.Struct, frozen=True):
    """What must change whenever anything changes that an attempt could trip over."""

    current: bytes | None
    manifest_size: int | None
    files: frozenset[str]


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """A database held still.

    ``folder`` presents it to RocksDB: links to ``tables`` beside the copied CURRENT, MANIFEST,
    OPTIONS and logs (``copies``).
    """

    found: Found
    folder: Path
    tables: dict[str, Held]
    copies: tuple[str, ...]


class Freezer:
    """Makes attempts on one database; ``folder`` is made anew by each.

    ``large`` is where copies of more than a MiB go, if not there too, made when there is one; what
    is copied to a disk leaves ``min_free_bytes``.
    """

    def __init__(
        self,
        found: Found,
        folder: Path,
        hold: Callable[[str], Held],
        min_free_bytes: int,
        *,
        large: Callable[[], Path] | None = None,
    ) -> None:
        self._found = found
        self._source = found.path
        self._folder = folder
        self._large = None if large is None else cache(large)
        self._hold = hold
        self._min_free_bytes = min_free_bytes
        self._tables: dict[str, Held] = {}
        self._logs: dict[str, Pin] = {}

    def freeze(self) -> Frozen:
        """Hold the database still.

        Raises UnsettledError when trying again may help, SourceDamagedError or CaptureError when it
        would not. On failure nothing stays open.
        """
        try:
            return self._freeze()
        except BaseException:
            for table in self._tables.values():
                table.abandon()
            raise
        finally:
            for log in self._logs.values():
                log.free()

    def _freeze(self) -> Frozen:
        with self._same_folder():
            return self._freeze_files()

    @contextmanager
    def _same_folder(self) -> Iterator[None]:
        """Two copies of a database have tables of one name and size with different bytes."""
        try:
            fd = os.open(self._source, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise UnsettledError("its folder is gone") from error
        try:
            yield
            if not leads_to(self._source, os.fstat(fd)):
                raise UnsettledError("its folder was replaced")
        finally:
            os.close(fd)

    def _freeze_files(self) -> Frozen:
        before = self._list()
        self._hold_new(before)
        current = self._read_current(before)
        try:
            manifest = names.named_manifest(current, self._found.name)
        except SourceDamagedError as error:
            # Whoever copies a database here may just have made the file.
            raise UnsettledError("it does not name a MANIFEST", names.CURRENT) from error
        if manifest not in before:
            reason = names.on_missing_manifest(manifest, self._list())
            raise UnsettledError(reason, manifest)
        manifest_size = self._copy(manifest)
        after = self._list()
        new_logs = self._hold_new(after)
        if new_logs and self._has_log() and _size(self._source / manifest) != manifest_size:
            raise UnsettledError("write-ahead logs came and went")
        logs = self._copy_logs()
        options = self._copy_options(after)
        if self._read_current(after) != current:
            raise UnsettledError(f"a new MANIFEST replaced {manifest}", manifest)
        (self._folder / names.CURRENT).write_bytes(current)
        folder = str(self._folder)
        for name, table in self._tables.items():
            os.symlink(table.link, f"{folder}/{name}")  # noqa: PTH211 - thousands of them
        return Frozen(
            found=self._found,
            folder=self._folder,
            tables=self._tables,
            copies=(names.CURRENT, manifest, *options, *logs),
        )

    def _list(self) -> list[str]:
        try:
            found = list_names(self._source)
        except FileNotFoundError as error:
            raise UnsettledError("its folder is gone") from error
        blobs = sorted(filter(names.is_blob, found))
        if blobs:
            raise CaptureError(
                f"{self._found.name} keeps values in blob files, which cannot be captured hot",
                hint="switch enable_blob_files off, or snapshot from the changelog",
                file=names.child(self._found.name, blobs[0]),
            )
        return found

    def _hold_new(self, listed: Iterable[str]) -> list[str]:
        """Hold what is not held yet; return the logs among it. What is gone already is left."""
        new_logs = []
        source = f"{self._source}/"
        for name in listed:
            held = self._tables.get(name)
            try:
                if isinstance(held, Copy) and not held.is_current():
                    held.free()
                    held = None
                if held is not None:
                    continue
                if names.is_table(name):
                    self._tables[name] = self._hold(source + name)
                elif names.is_log(name) and name not in self._logs:
                    self._logs[name] = Pin(source + name)
                    new_logs.append(name)
            except FileNotFoundError:
                continue
        return new_logs

    def _read_current(self, listed: Iterable[str]) -> bytes:
        try:
            return read_small(self._source / names.CURRENT)
        except FileNotFoundError as error:
            if any(names.is_table(name) for name in listed):
                raise UnsettledError("it has tables but no CURRENT", names.CURRENT) from error
            raise UnsettledError("it is being created") from error

    def _copy(self, name: str) -> int:
        try:
            fd = open_file(self._source / name)
        except FileNotFoundError as error:
            raise UnsettledError(f"{name} is missing", name) from error
        try:
            size = os.fstat(fd).st_size
            self._copy_open(fd, name, size)
        finally:
            os.close(fd)
        return size

    def _copy_open(self, fd: int, name: str, size: int) -> None:
        if self._large is None:
            copy_bytes(fd, self._folder / name, size, min_free_bytes=self._min_free_bytes)
        elif size <= _PLAIN_LIMIT_BYTES:
            copy_bytes(fd, self._folder / name, size, min_free_bytes=0)
        else:
            large = self._large()
            copy_bytes(fd, large / name, size, min_free_bytes=self._min_free_bytes)
            (self._folder / name).symlink_to(large / name)

    def _has_log(self) -> bool:
        """Whether the write-ahead log is in use: Kafka Streams leaves every log empty."""
        return any(log.status().st_size for log in self._logs.values())

    def _copy_logs(self) -> list[str]:
        copied = []
        for name in sorted(self._logs, key=names.number):
            log = self._logs[name]
            size = log.status().st_size
            if size:
                self._copy_open(log.fd, name, size)
                copied.append(name)
        for name in copied:
            # A log that RocksDB recycles gets a new name and new bytes in the same file.
            status = self._logs[name].status()
            if status.st_nlink and not leads_to(self._source / name, status):
                raise UnsettledError(f"{name} was renamed", name)
        return copied

    def _copy_options(self, listed: Iterable[str]) -> list[str]:
        copied = []
        for name in sorted(filter(names.is_options, listed), key=names.number):
            try:
                self._copy(name)
            except UnsettledError:
                continue
            copied.append(name)
        if copied:
            check_log_place(self._folder / copied[-1], self._found.name)
        return copied


def source_state(found: Found) -> SourceState | None:
    """Look at a database as it is now; None when its folder is gone."""
    try:
        listed = _files(list_names(found.path))
    except FileNotFoundError:
        return None
    try:
        current = read_small(found.path / names.CURRENT)
    except FileNotFoundError:
        return SourceState(None, None, listed)
    try:
        manifest = names.named_manifest(current, found.name)
    except SourceDamagedError:
        return SourceState(current, None, listed)
    return SourceState(current, _size(found.path / manifest), listed)


def read_small(path: Path) -> bytes:
    """Read a file that never is large; raises FileNotFoundError, or CaptureError."""
    fd = open_file(path)
    try:
        return os.pread(fd, _PLAIN_LIMIT_BYTES, 0)
    finally:
        os.close(fd)


def check_log_place(options: Path, database: str) -> None:
    """Raise StoreUnsupportedError when RocksDB's ``wal_dir`` puts the write-ahead logs elsewhere.

    RocksDB leaves it empty in OPTIONS where it is the folder of the database.
    """
    for line in options.read_text(errors="replace").splitlines():
        key, _, value = line.strip().partition("=")
        if key == "wal_dir" and value:
            raise refused(database, on_other_folders(value))


def _files(listed: Iterable[str]) -> frozenset[str]:
    return frozenset(name for name in listed if names.is_rocksdb(name))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None

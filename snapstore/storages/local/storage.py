"""Objects as files below one folder."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from snapstore.errors import (
    BlobCorruptError,
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    RepositoryNotFoundError,
    StorageError,
    UnsafePathError,
)
from snapstore.model.store import ByteSource
from snapstore.ports import ObjectStat, UnfinishedUpload
from snapstore.storages.checked import CheckedReader, checked_chunks
from snapstore.storages.local.errors import FULL, explained, translated
from snapstore.storages.local.location import UNFINISHED, file_of, root_of
from snapstore.storages.local.publish import UnfinishedFile, written
from snapstore.storages.local.reserve import Reserve
from snapstore.storages.local.tree import Tree, require_folder, sync_folder
from snapstore.storages.local.walk import object_stat, walk

_READ_BYTES = 1 << 20
_COPY_BYTES = 256 << 10
"""What is read, hashed and written in turn: it stays in the processor's cache."""


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A local folder needs none."""


class LocalStorage:
    """Keeps objects as files, mode 0600, below one folder; implements CopyingStorage,
    ClockedStorage and ReservingStorage.

    Each file is written under ``.unfinished/``, synced, and then linked or renamed to its name. The
    folder itself is made by the first ``put``, if its parent is there.
    """

    Options = LocalOptions

    def __init__(self, url: str, options: LocalOptions | None = None) -> None:
        self.options = options or LocalOptions()
        self.root = root_of(url)
        self.url = self.root.as_uri()
        self._tree = Tree(self.root)
        self._unfinished = self.root / UNFINISHED
        self._reserve = Reserve(self._tree)

    def now(self, *, writing: bool) -> datetime | None:
        if not writing:
            return None
        try:
            with written(self._tree, [b""]) as file:
                return datetime.fromtimestamp(file.modified_s, UTC)
        except OSError:
            return None  # what is written next meets the same, and says so

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        final = file_of(self.root, key)
        with translated("write", final, needed_bytes=len(body)):
            self._tree.ensure_root()
            if if_absent and self._tree.look(key) is not None:
                raise _taken(key)
            while True:
                try:
                    self._put(key, body, if_absent=if_absent)
                    return
                except OSError as error:
                    if error.errno not in FULL or not self._reserve.give():
                        raise

    def _put(self, key: str, body: bytes, *, if_absent: bool) -> None:
        with written(self._tree, [body]) as file:
            if not if_absent:
                file.publish_over(key)
            elif not file.publish_new(key):
                raise _taken(key)

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        final = file_of(self.root, key)
        with translated("write", final, needed_bytes=source.size):
            self._tree.ensure_root()
            if self._tree.look(key) is not None:
                return self._already_there(key, source.size)
            with written(self._tree, checked_chunks(source, sha256, key)) as file:
                return self.take(file, key, source.size)

    @contextmanager
    def copied(self, source: ByteSource, *, called: str) -> Iterator["LocalCopy"]:
        reader = CheckedReader(source, called, 0, source.size)
        with translated("write", self._unfinished, needed_bytes=source.size):
            self._tree.ensure_root()
            chunks = iter(lambda: reader.next(_COPY_BYTES), b"")
            with written(self._tree, chunks) as file:
                yield LocalCopy(self, file, source.size, reader.hexdigest())

    def take(self, file: UnfinishedFile, key: str, size: int) -> bool:
        """Give a complete file a key unless that is taken; True if it was given."""
        final = file_of(self.root, key)
        with translated("write", final, needed_bytes=size):
            if self._tree.look(key) is not None:
                return self._already_there(key, size)
            return file.publish_new(key) or self._already_there(key, size)

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        with self._opened(key) as (fd, path):
            size = os.fstat(fd).st_size
            if size > limit_bytes:
                raise ManifestInvalidError(
                    f"{key} is larger than any object of its kind",
                    key=key,
                    size=size,
                    limit_bytes=limit_bytes,
                )
            return b"".join(_pread(fd, path, 0, size))

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        with self._opened(key) as (fd, path):
            yield from _pread(fd, path, start, stop)

    def stat(self, key: str) -> ObjectStat | None:
        path = file_of(self.root, key)
        with translated("look at", path):
            status = self._tree.look(key)
        if status is None:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise UnsafePathError(
                f"refused: {path} is not a regular file", hint="move it away", path=str(path)
            )
        return object_stat(key, status)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        self._require_root()
        yield from walk(self._tree, prefix, start_after)

    def delete(self, keys: Sequence[str]) -> None:
        failed: dict[str, OSError] = {}
        names: dict[str, list[str]] = {}
        for key in keys:
            file_of(self.root, key)
            parent, _, name = key.rpartition("/")
            names.setdefault(parent, []).append(name)
        for parent, found in names.items():
            failed |= self._delete(parent, found)
        if failed:
            first, cause = next(iter(failed.items()))
            why = explained(cause, "delete", file_of(self.root, first))
            raise StorageError(why.message, hint=why.hint, failed=[*failed]) from cause

    def _delete(self, parent: str, names: Sequence[str]) -> dict[str, OSError]:
        """Delete objects of one folder, and return those that would not go by their keys."""
        failed: dict[str, OSError] = {}
        path = self.root / parent
        with translated("delete in", path):
            try:
                folder = self._tree.folder(parent)
            except (FileNotFoundError, NotADirectoryError):
                return failed
            with folder:
                for name in names:
                    try:
                        os.unlink(name, dir_fd=folder.fd)
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        failed[f"{parent}/{name}" if parent else name] = error
                sync_folder(folder)
        return failed

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        self._require_root()
        for found in walk(self._tree, "", "", top=UNFINISHED):
            yield UnfinishedUpload(
                key=f"{UNFINISHED}/{found.key}",
                upload_id=found.key,
                started_at=found.modified_at,
            )

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        path = file_of(self._unfinished, upload.upload_id)
        parent, _, name = f"{UNFINISHED}/{upload.upload_id}".rpartition("/")
        with (
            translated("delete", path),
            suppress(FileNotFoundError),
            self._tree.folder(parent) as folder,
        ):
            os.unlink(name, dir_fd=folder.fd)

    def checks_checksums(self, key: str) -> bool:
        del key
        return True

    def keep_room(self) -> None:
        self._reserve.fill()

    def freeing(self) -> AbstractContextManager[None]:
        return self._reserve.used()

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _already_there(self, key: str, size: int) -> bool:
        found = self.stat(key)
        if found is None:
            raise StorageError(f"{key} was deleted while it was being stored", key=key)
        if found.size != size:
            raise BlobCorruptError(
                f"{key} is in the repository with another size",
                hint="run verify",
                key=key,
                size=found.size,
                expected_size=size,
            )
        return False

    def _opened(self, key: str) -> "_Opened":
        self._require_root()
        return _Opened(self._tree, file_of(self.root, key), key)

    def _require_root(self) -> None:
        with translated("look at", self.root):
            if not self.root.is_dir():
                require_folder(self.root)
                raise RepositoryNotFoundError(
                    f"the folder {self.root} does not exist",
                    hint="mount the disk, or run snapstore init",
                    url=self.url,
                )


class LocalCopy:
    """A copy in the folder of unfinished files; implements FileCopy."""

    def __init__(self, storage: LocalStorage, file: UnfinishedFile, size: int, sha256: str) -> None:
        self.sha256 = sha256
        self._storage = storage
        self._file = file
        self._size = size

    def publish(self, key: str) -> bool:
        return self._storage.take(self._file, key, self._size)


class _Opened:
    """A descriptor of an object's file for the time of a ``with``."""

    def __init__(self, tree: Tree, path: Path, key: str) -> None:
        self._tree = tree
        self._path = path
        self._key = key
        self._fd = -1

    def __enter__(self) -> tuple[int, Path]:
        with translated("read", self._path):
            try:
                self._fd = self._tree.open_file(self._key)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise ObjectNotFoundError(f"there is no {self._key}", key=self._key) from error
        return self._fd, self._path

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)


def _pread(fd: int, path: Path, start: int, stop: int) -> Iterator[bytes]:
    position = start
    while position < stop:
        with translated("read", path):
            chunk = os.pread(fd, min(_READ_BYTES, stop - position), position)
        if not chunk:
            raise StorageError(
                f"{path} ends at byte {position}, before byte {stop}", path=str(path), size=position
            )
        position += len(chunk)
        yield chunk


def _taken(key: str) -> ObjectExistsError:
    return ObjectExistsError(f"{key} is there already", key=key)

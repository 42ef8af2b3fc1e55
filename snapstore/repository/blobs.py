"""Blobs: immutable bytes by the hash of their content."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from snapstore.errors import BlobCorruptError, BlobMissingError, ConfigError, ObjectNotFoundError
from snapstore.model.store import ByteSource
from snapstore.ports import CopyingStorage, ObjectStorage
from snapstore.repository import keys

_HEX_LENGTH = 64
_FEW = 8
_MANY = 20_000
_LISTED_FOR_ONE_ASKED = 20

_Send = Callable[[str], bool]


class StoredBlob(msgspec.Struct, frozen=True):
    """Where bytes are in the repository; ``new`` if they were sent there just now."""

    name: str
    new: bool

    @property
    def sha256(self) -> str:
        return self.name[:_HEX_LENGTH]


class BlobWriter:
    """Puts the files of one run, each content once; safe for several threads.

    ``condemned`` are the names that were marked for deletion when the run began: they are dead, so
    their bytes are stored anew as ``<sha256>.<run>``. With ``read_back`` the storage is not
    believed: what was sent is read again and compared.
    """

    def __init__(
        self, storage: ObjectStorage, *, run: str, read_back: bool, condemned: frozenset[str]
    ) -> None:
        if not keys.is_blob_name(f"{'0' * 64}.{run}"):
            raise ConfigError(f"not the id of a run: {run!r}", run=run)
        self._storage = storage
        self._run = run
        self._read_back = read_back
        self._condemned = condemned
        self._names: dict[str, str] = {}
        self._listed: dict[str, dict[str, int]] = {}
        self._list_all_first = True
        self._gone: set[str] = set()
        self._guards: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def put(self, source: ByteSource, sha256: str, known: Mapping[str, str]) -> StoredBlob:
        """Make sure that the repository holds the source's bytes.

        ``known`` maps hashes to blobs that a listed snapshot names. No sweep takes those, but a
        lifecycle rule or a person may: one that is gone, or of another size, is sent again.
        Raises CaptureError when the source ends early, BlobCorruptError when the storage holds
        something else than what was sent.
        """

        def send(name: str) -> bool:
            return self._storage.put_file(keys.blob(name), source, sha256=sha256)

        return self._once(sha256, source.size, known, send)

    @property
    def copies(self) -> bool:
        """Whether ``copy`` can be called."""
        return isinstance(self._storage, CopyingStorage)

    def copy(self, source: ByteSource, known: Mapping[str, str], *, called: str) -> StoredBlob:
        """Do what ``put`` does for a source whose hash is not known: it is read once.

        The blob is named by the hash of the bytes that were written. ``called`` is what messages
        call the source.
        """
        if not isinstance(self._storage, CopyingStorage):
            raise TypeError(f"{self._storage.url} must know the hash of a file before it takes it")
        with self._storage.copied(source, called=called) as copied:

            def send(name: str) -> bool:
                return copied.publish(keys.blob(name))

            return self._once(copied.sha256, source.size, known, send)

    def _once(self, sha256: str, size: int, known: Mapping[str, str], send: _Send) -> StoredBlob:
        """Use the blob that has those bytes, or let ``send`` make one of the name it is given."""
        with self._lock:
            guard = self._guards.setdefault(sha256, threading.Lock())
        with guard:
            name = self._names.get(sha256)
            if name is not None:
                return StoredBlob(name, new=False)
            many = len(known) > _FEW
            reused = self._reused(known.get(sha256), size, many=many)
            stored = reused or self._put(sha256, size, send)
            self._names[sha256] = stored.name
        return stored

    def unseen(self, names: Sequence[str]) -> list[str]:
        """Return which of the names a listing does not show; all of them where they are few.

        A page of a listing costs as much as asking for some dozen blobs, so it ends where asking
        for each of them would cost less: ``is_stored`` says what is true of the others.
        """
        if len(names) <= _FEW:
            return [*names]
        listed = islice(self._storage.list(keys.BLOBS), len(names) * _LISTED_FOR_ONE_ASKED)
        seen = {stat.key.rpartition("/")[2] for stat in listed}
        return [name for name in names if name not in seen]

    def is_stored(self, name: str) -> bool:
        """Ask whether a blob is (still) there; one that is not is stored anew if asked to."""
        if self._storage.stat(keys.blob(name)) is not None:
            return True
        with self._lock:
            self._names.pop(name[:64], None)
            self._gone.add(name)
        return False

    def _reused(self, name: str | None, size: int, *, many: bool) -> StoredBlob | None:
        if name is None or name in self._condemned or name in self._gone:
            return None
        if many:
            self._list_all()
        there = self._sizes_beside(name).get(name) == size
        return StoredBlob(name, new=False) if there else None

    def _list_all(self) -> None:
        """List all blobs, once for the run, unless there are too many: then folder by folder.

        The blobs of one snapshot lie in all 256 folders; most repositories are listed as a whole
        with less requests than folders.
        """
        with self._guards.setdefault("", threading.Lock()):
            if not self._list_all_first:
                return
            self._list_all_first = False
            found = list(islice(self._storage.list(keys.BLOBS), _MANY + 1))
            if len(found) > _MANY:
                return
            listed: dict[str, dict[str, int]] = {_folder(f"{n:02x}"): {} for n in range(256)}
            for stat in found:
                folder, _, name = stat.key.rpartition("/")
                listed.setdefault(f"{folder}/", {})[name] = stat.size
            with self._lock:
                self._listed = listed

    def _sizes_beside(self, name: str) -> dict[str, int]:
        """List the blobs of a folder once for the run: 256 listings, however many files it has."""
        folder = _folder(name)
        with self._lock:
            guard = self._guards.setdefault(folder, threading.Lock())
        with guard:
            sizes = self._listed.get(folder)
            if sizes is None:
                found = self._storage.list(folder)
                sizes = {stat.key.removeprefix(folder): stat.size for stat in found}
                self._listed[folder] = sizes
        return sizes

    def _put(self, sha256: str, size: int, send: _Send) -> StoredBlob:
        if sha256 not in self._condemned:
            try:
                if send(sha256):
                    return self._sent(sha256, size, sha256)
                sound = self._reads_as(sha256, size, sha256)
            except BlobCorruptError:
                sound = False
            if sound:
                return StoredBlob(sha256, new=False)
        # The plain name is condemned, or taken by damage: neither stops a new snapshot.
        anew = f"{sha256}.{self._run}"
        send(anew)
        return self._sent(anew, size, sha256)

    def _sent(self, name: str, size: int, sha256: str) -> StoredBlob:
        if self._read_back and not self._reads_as(name, size, sha256):
            self._storage.delete([keys.blob(name)])
            raise BlobCorruptError(
                "the storage holds other bytes than were sent to it", blob=name, size=size
            )
        return StoredBlob(name, new=True)

    def _reads_as(self, name: str, size: int, sha256: str) -> bool:
        """Whether a blob can be what its name says; its bytes are read only for ``read_back``."""
        stat = self._storage.stat(keys.blob(name))
        if stat is None or stat.size != size:
            return False
        if not self._read_back:
            return True
        digest = hashlib.sha256()
        for chunk in read_blob(self._storage, name, start=0, stop=size):
            digest.update(chunk)
        return digest.hexdigest() == sha256


def _folder(name: str) -> str:
    return f"{keys.BLOBS}{name[:2]}/"


def read_blob(storage: ObjectStorage, name: str, *, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of a blob from ``start`` to before ``stop``; the caller checks the hash.

    Raises BlobMissingError when the storage does not hold it.
    """
    try:
        yield from storage.read(keys.blob(name), start=start, stop=stop)
    except ObjectNotFoundError as error:
        raise BlobMissingError(f"blob {name} is missing", blob=name) from error


def condemned_names(storage: ObjectStorage) -> frozenset[str]:
    """Return the names of all blobs that are marked for deletion."""
    return frozenset(stat.key.rpartition("/")[2] for stat in storage.list(keys.CONDEMNED))

"""Hashes of files that were read before, so that an unchanged file is not read again."""

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.model.store import FileIdentity

_MAGIC = b"snapstore hashes 1\n"
_YOUNG_NS = 2_000_000_000
_MAX_ENTRIES = 200_000
_LIMIT_BYTES = _MAX_ENTRIES * 256


_Facts = tuple[int, int, int, int, int]
_decoder = msgspec.msgpack.Decoder(dict[_Facts, bytes])


class HashCache:
    """Hashes by what a file system says of a file. Only a cache: losing it costs time.

    ``path`` is its file, made when it is saved. Two processes may share it: each keeps what the
    other added. A file that changed within the last two seconds is never believed, nor noted: it
    could change once more within the same tick of its time stamp. A cache file that is damaged is
    begun anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: dict[_Facts, bytes] | None = None
        self._used: dict[_Facts, bytes] = {}

    def get(self, identity: FileIdentity, *, now_ns: int) -> str | None:
        """Return the hash in hex, or None when the file must be read. Times since 1970."""
        if _is_young(identity, now_ns):
            return None
        with self._lock:
            facts = _facts(identity)
            if self._known is None:
                self._known = _load(self._path)
            found = self._used.get(facts) or self._known.get(facts)
            if found is None:
                return None
            self._used[facts] = found
        return found.hex()

    def add(self, identity: FileIdentity, sha256: str, *, now_ns: int) -> None:
        """Remember a hash; ``now_ns`` is a time before the file was read."""
        if not _is_young(identity, now_ns):
            with self._lock:
                self._used[_facts(identity)] = bytes.fromhex(sha256)

    def save(self) -> None:
        """Write what was used and added, after what is there; the longest unused goes first.

        Where that is nothing, nothing is written. Raises OSError when the file cannot be written.
        """
        if not self._used:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, _locked(self._path.with_suffix(".lock")):
            # Whoever made these was killed: only the holder of the lock writes.
            for leftover in self._path.parent.glob(f".{self._path.name}.*"):
                leftover.unlink()
            merged = _load(self._path)
            for facts, sha256 in self._used.items():
                merged.pop(facts, None)
                merged[facts] = sha256
            body = msgspec.msgpack.encode(dict(list(merged.items())[-_MAX_ENTRIES:]))
            _replace(self._path, _MAGIC + hashlib.sha256(body).digest() + body)


def _facts(identity: FileIdentity) -> _Facts:
    return (
        identity.device,
        identity.inode,
        identity.size,
        identity.mtime_ns,
        identity.ctime_ns,
    )


def _is_young(identity: FileIdentity, now_ns: int) -> bool:
    return now_ns - max(identity.mtime_ns, identity.ctime_ns) < _YOUNG_NS


def _load(path: Path) -> dict[_Facts, bytes]:
    try:
        raw = read_regular(path, limit_bytes=_LIMIT_BYTES)
    except (FileNotFoundError, NotRegularError):
        return {}
    head = len(_MAGIC) + hashlib.sha256().digest_size
    body = raw[head:]
    if raw[:head] != _MAGIC + hashlib.sha256(body).digest():
        return {}
    return _decoder.decode(body)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o644), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _replace(path: Path, content: bytes) -> None:
    # Imported here: a listing has no use for it, and it takes as long as the catalog.
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise

"""What the last run saw of each store, so that one which has not changed need not be looked into.

A record says: a store whose files look like this is in that snapshot, which the repository listed
at that time. It is kept on the host that ran, beside the remembered hashes, and only ever spares
work: a record that is missing, damaged, of other settings or of another version counts as none.
Whatever takes snapshots out of a repository forgets the records of it, before and after.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from snapstore.errors import ConfigError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.moment import Moment

_MAGIC = b"snapstore last run 1\n"


class SeenStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store as a run saw it. ``fingerprint`` is that of its files, ``running`` whether an
    application had it open.

    The rest is what was told of it: ``listed`` holds what it holds, in so many ``files`` of
    ``bytes`` that travel outside the manifest, with ``remarks``. ``listed_at`` is a time before the
    catalog was read.
    """

    fingerprint: str
    running: bool
    listed: ListedSnapshot
    listed_at: Moment
    files: int
    bytes: int
    remarks: tuple[str, ...] = ()


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the stores of one place, by their printed ids.

    ``settings`` is a digest of all that the answer hangs on beside the files; ``repository`` is the
    id in the marker, ``url`` where that is.
    """

    settings: str
    repository: str
    url: str
    stores: dict[str, SeenStore]


_decoder = msgspec.msgpack.Decoder(LastRun)


class LastRuns:
    """The records of one host, each by the name of a place; safe for several processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, place: str) -> LastRun | None:
        """Return the record of a place; one that cannot be read counts as none."""
        return _load(self._path(place))

    def stamp(self, repository: str) -> str:
        """Return a text that changes whenever the records of a repository are forgotten."""
        try:
            return self._stamp(repository).read_text("ascii", "replace")
        except FileNotFoundError:
            return ""

    def save(self, place: str, run: LastRun, *, stamp: str) -> None:
        """Keep a record; what it says of its stores goes before what was known.

        Nothing is kept where the records of the repository were forgotten after ``stamp`` was
        asked for. Raises OSError when the file cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if self.stamp(run.repository) != stamp:
                return
            before = self.load(place)
            if before is not None and _is_of_the_same(before, run):
                run = msgspec.structs.replace(run, stores={**before.stores, **run.stores})
            body = msgspec.msgpack.encode(run)
            _replace(self._path(place), _MAGIC + hashlib.sha256(body).digest() + body)

    def forget(self, repository: str, url: str) -> None:
        """Forget what is known of a repository, or of another one that was at its URL.

        Raises ConfigError when that cannot be done.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            if not self._folder.is_dir():
                # Where no folder can be made nothing was ever kept.
                return
        try:
            with self._locked():
                _replace(self._stamp(repository), os.urandom(8).hex().encode())
                for path in self._folder.glob("*.run"):
                    run = _load(path)
                    if run is None or repository == run.repository or url == run.url:
                        path.unlink()
        except OSError as error:
            raise ConfigError(
                f"what is known of {url} cannot be forgotten: {error.strerror}",
                hint=f"remove {self._folder}, or choose another place for state.cache_dir",
                path=str(self._folder),
            ) from error

    @contextmanager
    def forgetting(self, repository: str, url: str) -> Iterator[None]:
        """Forget before and after what happens meanwhile, so that no crash leaves a record."""
        self.forget(repository, url)
        try:
            yield
        finally:
            self.forget(repository, url)

    def _path(self, place: str) -> Path:
        return self._folder / f"{_name(place)}.run"

    def _stamp(self, repository: str) -> Path:
        return self._folder / f"{_name(repository)}.forgotten"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _is_of_the_same(one: LastRun, other: LastRun) -> bool:
    return (one.settings, one.repository, one.url) == (other.settings, other.repository, other.url)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _load(path: Path) -> LastRun | None:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    head = len(_MAGIC) + hashlib.sha256().digest_size
    body = raw[head:]
    if raw[:head] != _MAGIC + hashlib.sha256(body).digest():
        return None
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError:
        # Whole, so another version wrote it.
        return None


def _replace(path: Path, content: bytes) -> None:
    """Put a file into place; the lock is held, so nobody else writes under the passing name."""
    passing = path.with_name(f".{path.name}.new")
    passing.unlink(missing_ok=True)
    fd = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    passing.replace(path)

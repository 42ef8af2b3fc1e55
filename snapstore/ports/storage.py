"""The object storage: bytes by key."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from snapstore.model.report import Event
from snapstore.model.store import ByteSource


class ObjectStat(msgspec.Struct, frozen=True, kw_only=True):
    """An object without its bytes. ``modified_at`` is by the storage's own clock."""

    key: str
    size: int
    modified_at: datetime
    storage_class: str | None = None


class UnfinishedUpload(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of an upload that was never completed."""

    key: str
    upload_id: str
    started_at: datetime


class ObjectStorage(Protocol):
    """Bytes by key. Keys are relative to the repository's URL and hold only safe characters.

    Every method may raise StorageError (retryable), CredentialsError (not; a bucket that does not
    exist included) or NoSpaceError, all after the storage's own retries, and, where a folder is
    missing, RepositoryNotFoundError. Methods are safe to call from several threads.
    """

    url: str

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        """Store ``body`` whole, or not at all.

        With ``if_absent``, raises ObjectExistsError and changes nothing when the key is taken; of
        several that race for one key exactly one succeeds.
        """
        ...

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        """Store a content-named file unless its key is taken; True if it was stored.

        ``sha256`` is the hex hash of the whole source; the storage checks what arrives against it.
        Raises CaptureError when the source ends early, cannot be read or has another hash (nothing
        is left behind then), and BlobCorruptError when what has the key is of another size.
        """
        ...

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        """Return the object whole.

        Raises ObjectNotFoundError, or ManifestInvalidError when it is larger than ``limit_bytes``.
        """
        ...

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``stop``, in order; short reads are resumed.

        Raises ObjectNotFoundError, or StorageError when they cannot be had in full.
        """
        ...

    def stat(self, key: str) -> ObjectStat | None:
        """Return the object's facts, or None when the key is free."""
        ...

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        """Yield all objects whose key begins with ``prefix``.

        Those of one folder come sorted by key; the order of folders is the storage's own (SeaweedFS
        lists ``a/x`` before ``a-b``, AWS after it). With ``start_after``, a key of the folder that
        ``prefix`` names, only what comes after it.
        """
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; a key that is free already is no error.

        Tries every key; raises StorageError with ``failed`` (the keys) when some would not go.
        """
        ...

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        """Yield the uploads below this URL that were begun and never completed."""
        ...

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Remove its bytes; one that is gone already is no error."""
        ...

    def checks_checksums(self, key: str) -> bool:
        """Whether bytes that do not have the SHA-256 sent with them are refused on arrival.

        Tried out at ``key``, which must be free and is free again afterwards. False means that
        bytes changed on the way would be stored and be noticed only when they are read.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class CheckingStorage(ObjectStorage, Protocol):
    """A storage that can leave to its server the check of what arrives."""

    def rely_on_checks(self) -> None:
        """Hash no file a second time while it is sent: the server was seen to refuse wrong bytes.

        What ``put_file`` raises stays the same.
        """
        ...


@runtime_checkable
class TellingStorage(ObjectStorage, Protocol):
    """A storage that has something to say while it works: that it is waited for, what it lacks."""

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Send notes there from now on, from any thread; those from before are sent at once."""
        ...


@runtime_checkable
class ClockedStorage(ObjectStorage, Protocol):
    """A storage that tells the time by the clock that dates its objects."""

    def now(self, *, writing: bool) -> datetime | None:
        """Return that time; None where it is not told. No request is made for it.

        With ``writing`` a file that is gone again at once may be made to find it out.
        """
        ...


@runtime_checkable
class VersioningStorage(ObjectStorage, Protocol):
    """A storage that may keep what is deleted as an old version."""

    def keeps_versions(self) -> bool:
        """Whether it does, so that deleting frees nothing; False where that cannot be known."""
        ...


@runtime_checkable
class ReservingStorage(ObjectStorage, Protocol):
    """A storage that keeps some room back for writing what frees room."""

    def keep_room(self) -> None:
        """Keep it back from now on, as far as there is room; called when a repository is used."""
        ...

    def freeing(self) -> AbstractContextManager[None]:
        """Let ``put`` use that room until it is left, which makes up for what was used."""
        ...


class FileCopy(Protocol):
    """A whole copy of a file that lies in the storage and has no key yet."""

    @property
    def sha256(self) -> str:
        """The hex hash of the bytes that were written."""
        ...

    def publish(self, key: str) -> bool:
        """Make it durable, and give it a key unless that is taken; True if it was given.

        Raises what ``put_file`` raises for a key that is taken.
        """
        ...


@runtime_checkable
class CopyingStorage(ObjectStorage, Protocol):
    """A storage that takes a file before its key is known: one reading gives copy and hash."""

    def copied(self, source: ByteSource, *, called: str) -> AbstractContextManager[FileCopy]:
        """Copy a file; leaving removes what was not published.

        ``called`` is what messages call it. Raises CaptureError when the source ends early or
        cannot be read.
        """
        ...

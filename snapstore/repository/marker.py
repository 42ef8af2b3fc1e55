"""The marker: the one object that makes a place a repository, and says of which format."""

import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec

from snapstore.errors import (
    ConflictError,
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    RepositoryExistsError,
    RepositoryNotFoundError,
    StorageError,
    StorageUnfitError,
    UnavailableError,
)
from snapstore.model.moment import Moment
from snapstore.ports import ObjectStorage
from snapstore.repository import encoding, keys

LONGEST_RUN = timedelta(hours=24)
_MAX_BYTES = 64 << 10
_LONGEST_RUN_S = 366 * 86_400


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What all users of a repository must agree on.

    ``uploads`` says who proves that uploaded bytes arrived: the storage, which refuses a wrong
    checksum, or the writer, which reads back what it sent. A run that took longer than
    ``longest_run_s`` publishes nothing; a sweep waits longer than that before it deletes.
    """

    format: int
    id: str
    created_at: Moment
    uploads: Literal["checked_by_storage", "read_back"]
    longest_run_s: Annotated[int, msgspec.Meta(ge=1, le=_LONGEST_RUN_S)]

    @property
    def longest_run(self) -> timedelta:
        return timedelta(seconds=self.longest_run_s)


def create(
    storage: ObjectStorage,
    *,
    created_at: datetime,
    accept_unverified_uploads: bool = False,
    longest_run: timedelta = LONGEST_RUN,
) -> Marker:
    """Make the place a repository, after proving that the storage is fit for one.

    Raises RepositoryExistsError, ConflictError when something else is there, or StorageUnfitError:
    when conditional puts are ignored, or capital letters are taken for small ones, and when
    checksums are ignored, unless ``accept_unverified_uploads``.
    """
    # Imported here: a repository is made once.
    from snapstore.repository import probe

    _require_empty(storage)
    probe.require_conditional_puts(storage)
    probe.require_case(storage)
    checked = probe.checks_checksums(storage)
    if not checked and not accept_unverified_uploads:
        raise StorageUnfitError(
            "the storage accepts bytes that do not have the checksum sent with them",
            hint="with --accept-unverified-uploads every upload is read back and compared, which "
            "costs its download",
            url=storage.url,
        )
    marker = Marker(
        format=encoding.FORMAT,
        id=uuid.uuid4().hex,
        created_at=created_at,
        uploads="checked_by_storage" if checked else "read_back",
        longest_run_s=int(longest_run.total_seconds()),
    )
    body = encoding.encode(marker)
    try:
        storage.put(keys.MARKER, body, if_absent=True)
    except ObjectExistsError as error:
        raise _exists(storage) from error
    except StorageError:
        # The answer was lost, not always the request.
        if _read(storage, keys.MARKER) != body:
            raise
    with suppress(UnavailableError):
        # Whoever prunes or repairs makes up for it.
        keep_copy(storage, marker)
    return marker


def keep_copy(storage: ObjectStorage, marker: Marker) -> None:
    """Make sure that there is a second copy: without the marker nothing else can be used."""
    if storage.stat(keys.MARKER_COPY) is None:
        with suppress(ObjectExistsError):
            storage.put(keys.MARKER_COPY, encoding.encode(marker), if_absent=True)


def read(storage: ObjectStorage) -> Marker:
    """Return the marker of a repository.

    Raises RepositoryNotFoundError where nothing of one is there, ManifestInvalidError where the
    marker is lost or damaged, or FormatUnsupportedError.
    """
    body = _read(storage, keys.MARKER)
    if body is None:
        if _holds_snapshots(storage):
            raise ManifestInvalidError(
                f"{storage.url} holds snapshots, and its {keys.MARKER} is missing",
                hint="put it back: snapstore repair",
                url=storage.url,
            )
        raise RepositoryNotFoundError(
            f"there is no repository at {storage.url}", hint="make one: snapstore init"
        )
    return _decode(body, keys.MARKER, storage)


def read_copy(storage: ObjectStorage) -> Marker | None:
    """Return what the second copy says; None where there is none, or a damaged one."""
    body = _read(storage, keys.MARKER_COPY)
    if body is None:
        return None
    try:
        return _decode(body, keys.MARKER_COPY, storage)
    except ManifestInvalidError:
        return None


def _decode(body: bytes, key: str, storage: ObjectStorage) -> Marker:
    try:
        return encoding.decode(body, Marker, what=f"{key} of {storage.url}")
    except ManifestInvalidError as error:
        error.hint = "put it back from its copy: snapstore repair"
        raise


def _holds_snapshots(storage: ObjectStorage) -> bool:
    """Whether something is there that only a repository has."""
    try:
        if storage.stat(keys.MARKER_COPY) is not None:
            return True
        return next(iter(storage.list(keys.MANIFESTS)), None) is not None
    except RepositoryNotFoundError:
        return False


def _read(storage: ObjectStorage, key: str) -> bytes | None:
    try:
        return storage.get(key, limit_bytes=_MAX_BYTES)
    except (ObjectNotFoundError, RepositoryNotFoundError):
        return None


def _require_empty(storage: ObjectStorage) -> None:
    if storage.stat(keys.MARKER) is not None:
        raise _exists(storage)
    try:
        for stat in storage.list(""):
            # Another probe may be running, or have been killed: its objects mean nothing.
            if not stat.key.startswith(keys.PROBES) and not keys.is_litter(stat.key):
                raise ConflictError(
                    f"{storage.url} is not empty and is no repository",
                    hint="choose an empty place, or a prefix of its own",
                    found=stat.key,
                )
    except RepositoryNotFoundError:
        return


def _exists(storage: ObjectStorage) -> RepositoryExistsError:
    return RepositoryExistsError(f"there is a repository at {storage.url} already")

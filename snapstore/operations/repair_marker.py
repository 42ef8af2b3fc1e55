"""Bring back the marker of a repository, and never make one of what is none."""

import uuid
from datetime import datetime, timedelta

import msgspec

from snapstore.errors import (
    FormatUnsupportedError,
    IntegrityError,
    ManifestInvalidError,
    ObjectExistsError,
    RefusedError,
    RepositoryNotFoundError,
)
from snapstore.model.units import spell_duration
from snapstore.ports import ObjectStorage
from snapstore.repository import Marker, Repository, encoding, keys
from snapstore.repository import marker as markers

_LONGEST_RUN = timedelta(days=7)
"""Taken where nobody knows: longer than any run of a repository with the usual day."""
_LIMIT_BYTES = 64 << 20


class RecoveredMarker(msgspec.Struct, frozen=True, kw_only=True):
    """The marker to work with; ``note`` says how it was brought back, None where it was whole."""

    marker: Marker
    note: str | None = None


def recover_marker(
    storage: ObjectStorage, *, run: str, now: datetime, dry_run: bool
) -> RecoveredMarker:
    """Read the marker; where it is lost or damaged put back its copy, or a new one.

    A new one is made only of a place in which a whole manifest lies and nothing that is not of a
    repository. Raises RepositoryNotFoundError where nothing is there, FormatUnsupportedError, or
    ManifestInvalidError where the place may be something else.
    """
    try:
        marker = markers.read(storage)
    except FormatUnsupportedError:
        raise
    except ManifestInvalidError as error:
        lost = error
    else:
        copy = markers.read_copy(storage)
        if copy == marker:
            return RecoveredMarker(marker=marker)
        if not dry_run:
            storage.put(keys.MARKER_COPY, encoding.encode(marker))
        return RecoveredMarker(
            marker=marker, note=f"{keys.MARKER_COPY} was missing or of another repository"
        )
    marker_copy = markers.read_copy(storage)
    recovered = (
        _anew(storage, now, lost)
        if marker_copy is None
        else RecoveredMarker(
            marker=marker_copy, note=f"{keys.MARKER} was lost: put back from {keys.MARKER_COPY}"
        )
    )
    if not dry_run:
        _set_aside(storage, run)
        body = encoding.encode(recovered.marker)
        try:
            storage.put(keys.MARKER, body, if_absent=True)
        except ObjectExistsError:
            # Another host has just done it.
            return RecoveredMarker(marker=markers.read(storage))
        storage.put(keys.MARKER_COPY, body)
    return recovered


def _anew(storage: ObjectStorage, now: datetime, lost: ManifestInvalidError) -> RecoveredMarker:
    known = (keys.MARKER, keys.MARKER_COPY, *keys.FOLDERS)
    for stat in storage.list(""):
        if not stat.key.startswith(known) and not keys.is_litter(stat.key):
            raise ManifestInvalidError(
                f"{lost.message}, and {stat.key} is of no repository",
                hint="name the place of the repository itself, or move away what is not of it",
                found=stat.key,
            )
    marker = Marker(
        format=encoding.FORMAT,
        id=uuid.uuid4().hex,
        created_at=now,
        uploads="read_back",
        longest_run_s=int(_LONGEST_RUN.total_seconds()),
    )
    if not _has_manifest(Repository(storage, marker)):
        raise RepositoryNotFoundError(
            f"{storage.url} has neither a {keys.MARKER}, nor a copy, nor a whole manifest",
            hint="copy it back from wherever the repository was copied to",
        )
    return RecoveredMarker(
        marker=marker,
        note=f"{keys.MARKER} and its copy were lost: made anew with another id; uploads are read"
        f" back, and prune waits {spell_duration(_LONGEST_RUN)} and longer, as it is not known what"
        " was agreed on",
    )


def _has_manifest(repository: Repository) -> bool:
    for stat in repository.storage.list(keys.MANIFESTS):
        try:
            repository.manifests.load(keys.parse_manifest(stat.key))
        except (ValueError, IntegrityError, RefusedError):
            continue
        return True
    return False


def _set_aside(storage: ObjectStorage, run: str) -> None:
    """Keep a damaged marker in the quarantine."""
    if storage.stat(keys.MARKER) is None:
        return
    body = storage.get(keys.MARKER, limit_bytes=_LIMIT_BYTES)
    storage.put(keys.quarantined(run, keys.MARKER), body)
    storage.delete([keys.MARKER])

"""What deleting leaves in a storage: unfinished uploads, and old versions."""

from datetime import datetime
from typing import Final

from snapstore.errors import StorageUnfitError, UnavailableError
from snapstore.model.report import Noted
from snapstore.ports import Listener, ObjectStorage, UnfinishedUpload, VersioningStorage
from snapstore.repository import Repository, keys

_NOT_LOOKED_AT: Final = (StorageUnfitError, UnavailableError)
"""The storage does not answer, does not allow it, or knows no such request."""

VERSIONS_NOTE: Final = (
    "the bucket keeps old versions: what is deleted takes as much as before until its lifecycle "
    "rules remove noncurrent versions"
)


def abandoned_uploads(
    repository: Repository, before: datetime, listener: Listener
) -> list[UnfinishedUpload]:
    """Return the uploads of ours that no run can still be at work on.

    Those that cannot be listed are told of, and left: they cost room, and nothing relies on them.
    """
    try:
        return [
            upload
            for upload in repository.storage.unfinished_uploads()
            if upload.started_at < before and upload.key.startswith((*keys.FOLDERS, "."))
        ]
    except _NOT_LOOKED_AT as error:
        listener(Noted(message=_left(error)))
        return []


def abort_upload(repository: Repository, upload: UnfinishedUpload, listener: Listener) -> bool:
    """Abort an upload; False, and a note, where that is refused."""
    try:
        repository.storage.abort_upload(upload)
    except _NOT_LOOKED_AT as error:
        listener(Noted(message=_left(error)))
        return False
    return True


def keeps_versions(storage: ObjectStorage) -> bool:
    """Whether deleting frees nothing, as far as the storage tells."""
    return isinstance(storage, VersioningStorage) and storage.keeps_versions()


def _left(error: StorageUnfitError | UnavailableError) -> str:
    return (
        f"unfinished uploads were left: {error.message}; a lifecycle rule of the bucket can remove "
        "them (AbortIncompleteMultipartUpload)"
    )

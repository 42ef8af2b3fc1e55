"""List the objects of a bucket and its unfinished uploads, page by page."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from snapstore.errors import StorageError
from snapstore.ports import ObjectStat, UnfinishedUpload
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ListMultipartUploadsOutputTypeDef

_MOST_EMPTY_PAGES: Final = 1000
"""In a row. A server may skip what was deleted for some pages, but not for ever."""


class Listing:
    """Lists below one prefix of a bucket; ``root`` is that of the repository, cut off each key."""

    def __init__(self, connection: S3Connection, bucket: str, root: str) -> None:
        self._connection = connection
        self._bucket = bucket
        self._root = root

    def objects(self, prefix: str, start_after: str) -> Iterator[ObjectStat]:
        """Yield what ``ObjectStorage.list`` promises; StorageError for an answer that breaks it."""
        place = f"s3://{self._bucket}/{self._root}{prefix}"
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._root + prefix}
        if start_after:
            request["StartAfter"] = self._root + start_after
        progress = _Progress(f"list {place}")
        last = {_folder(start_after): start_after} if start_after else {}
        while True:
            with translated(f"list {place}"):
                page = self._connection.run(lambda client: client.list_objects_v2(**request))
            entries = page.get("Contents", [])
            for entry in entries:
                key = self._relative(entry["Key"], prefix)
                folder = _folder(key)
                if key <= last.get(folder, ""):
                    raise _malformed(
                        f"list {place}", f"the server listed {key!r} after {last[folder]!r}"
                    )
                last[folder] = key
                yield ObjectStat(
                    key=key,
                    size=entry["Size"],
                    modified_at=entry["LastModified"],
                    storage_class=entry.get("StorageClass"),
                )
            if not page["IsTruncated"]:
                return
            request["ContinuationToken"] = page["NextContinuationToken"]
            progress.require(page["NextContinuationToken"], empty=not entries)

    def uploads(self) -> Iterator[UnfinishedUpload]:
        """Yield the uploads below the root that were begun and never completed."""
        action = f"list the unfinished uploads of s3://{self._bucket}/{self._root}".rstrip("/")
        request: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._root}
        progress = _Progress(action)
        while True:
            with translated(action):
                page = self._connection.run(_uploads_page(request))
            for upload in page.get("Uploads", []):
                yield UnfinishedUpload(
                    key=self._relative(upload["Key"], ""),
                    upload_id=upload["UploadId"],
                    started_at=upload["Initiated"],
                )
            if not page["IsTruncated"]:
                return
            request = {**request, **_upload_markers(page)}
            progress.require((request["KeyMarker"], request["UploadIdMarker"]), empty=False)

    def _relative(self, key: str, prefix: str) -> str:
        if not key.startswith(self._root + prefix):
            below = f"s3://{self._bucket}/{self._root}{prefix}".rstrip("/")
            raise StorageError(f"the server listed {key!r}, which is not below {below}", key=key)
        return key.removeprefix(self._root)


class _Progress:
    """Sees that a listing comes to an end."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._seen: set[object] = set()
        self._empty = 0

    def require(self, marker: object, *, empty: bool) -> None:
        """Raise StorageError where a page leads to one that was there, or too many hold nothing."""
        self._empty = self._empty + 1 if empty else 0
        if marker in self._seen:
            raise _malformed(self._action, "the server goes round in a circle of pages")
        if self._empty > _MOST_EMPTY_PAGES:
            raise _malformed(self._action, f"the server sent {self._empty} pages without an object")
        self._seen.add(marker)


def _uploads_page(
    request: Mapping[str, Any],
) -> Callable[["S3Client"], "ListMultipartUploadsOutputTypeDef"]:
    return lambda client: client.list_multipart_uploads(**request)


def _upload_markers(page: Mapping[str, Any]) -> dict[str, str]:
    """Return where the next page begins; SeaweedFS leaves out the key."""
    key = page.get("NextKeyMarker") or page["Uploads"][-1]["Key"]
    return {"KeyMarker": key, "UploadIdMarker": page["NextUploadIdMarker"]}


def _folder(key: str) -> str:
    return key.rpartition("/")[0]


def _malformed(action: str, what: str) -> StorageError:
    return StorageError(
        f"cannot {action}: {what}",
        hint="check repository.options.endpoint_url, and what stands between it and the storage",
    )

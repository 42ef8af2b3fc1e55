"""Delete many objects, and find out which would not go."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from snapstore.errors import CredentialsError, StorageError
from snapstore.storages.s3.backoff import delays
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import explained, status_of, translated
from snapstore.storages.s3.options import S3Options

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import DeleteObjectsOutputTypeDef

BATCH = 1000
"""The most keys that one DeleteObjects request may hold; AWS refuses more."""

_PASSING: Final = ("InternalError", "ServiceUnavailable", "SlowDown")
_GONE: Final = ("NoSuchKey",)


class _NoBulkDeleteError(Exception):
    """The server does not know DeleteObjects."""


class Deletion:
    """Deletes objects of one bucket, a thousand in a request where the server can do that.

    ``left_versions``: it was seen that what is deleted stays as an old version.
    """

    def __init__(self, connection: S3Connection, bucket: str, options: S3Options) -> None:
        self.left_versions = False
        self._connection = connection
        self._bucket = bucket
        self._attempts = options.max_attempts
        self._at_once = options.connections
        self._has_bulk = True

    def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Delete all keys; return those that would not go, each with the server's reason.

        A server answers 200 to a request of which it refused a part. Raises CredentialsError when a
        whole request is refused; one that fails otherwise counts as a reason for each of its keys.
        """
        refused: dict[str, str] = {}
        for first in range(0, len(keys), BATCH):
            batch = keys[first : first + BATCH]
            try:
                refused |= self._delete_batch(batch)
            except StorageError as error:
                refused |= dict.fromkeys(batch, error.message)
        return refused

    def _delete_batch(self, batch: Sequence[str]) -> dict[str, str]:
        refused: dict[str, str] = {}
        waits = delays(self._attempts)
        while True:
            if not self._has_bulk:
                return refused | self._one_by_one(batch)
            try:
                answer = self._request(batch)
            except _NoBulkDeleteError as error:
                self._has_bulk = False
                self._connection.notes(
                    f"the server cannot delete many objects with one request ({error}): each takes "
                    "a request of its own"
                )
                continue
            errors = answer.get("Errors", [])
            wait_s = next(waits, None)
            again = [error["Key"] for error in errors if error.get("Code") in _PASSING]
            refused |= {
                error["Key"]: f"{error.get('Message') or 'refused'} ({error.get('Code')})"
                for error in errors
                if error.get("Code") not in _GONE
                and (wait_s is None or error.get("Code") not in _PASSING)
            }
            refused |= self._one_by_one(_untold(batch, answer))
            if wait_s is None or not again:
                return refused
            batch = again
            time.sleep(wait_s)

    def _request(self, batch: Sequence[str]) -> "DeleteObjectsOutputTypeDef":
        # Not quietly: a proxy answers 200 as well.
        objects = {"Objects": [{"Key": key} for key in batch], "Quiet": False}
        action = f"delete from s3://{self._bucket}"
        with translated(action):
            try:
                answer = self._connection.run(
                    lambda client: client.delete_objects(Bucket=self._bucket, Delete=objects)  # type: ignore[arg-type]
                )
            except ClientError as error:
                if _lacks_bulk(error, action):
                    raise _NoBulkDeleteError(f"HTTP {status_of(error)}") from error
                raise
        marked = any(deleted.get("DeleteMarker") for deleted in answer.get("Deleted", []))
        self.left_versions = self.left_versions or marked
        return answer

    def _one_by_one(self, keys: Sequence[str]) -> dict[str, str]:
        if not keys:
            return {}
        with ThreadPoolExecutor(min(self._at_once, len(keys)), "snapstore-delete") as pool:
            reasons = pool.map(self._delete_one, keys)
            return {key: why for key, why in zip(keys, reasons, strict=True) if why is not None}

    def _delete_one(self, key: str) -> str | None:
        """Delete one object; return why it would not go."""
        try:
            with translated(f"delete s3://{self._bucket}/{key}"):
                answer = self._connection.run(
                    lambda client: client.delete_object(Bucket=self._bucket, Key=key)
                )
        except StorageError as error:
            return error.message
        self.left_versions = self.left_versions or answer.get("DeleteMarker", False)
        return None


def _lacks_bulk(error: ClientError, action: str) -> bool:
    """Whether a refusal is one of the kind of request, not of these credentials or this moment."""
    status = status_of(error)
    if isinstance(explained(error, action), CredentialsError):
        return False
    return status == 501 or (400 <= status < 500 and status not in (408, 429))


def _untold(batch: Iterable[str], answer: Mapping[str, Any]) -> list[str]:
    """Return the keys of which an answer does not say what became of them."""
    told = {each["Key"] for name in ("Deleted", "Errors") for each in answer.get(name, [])}
    return [key for key in batch if key not in told]

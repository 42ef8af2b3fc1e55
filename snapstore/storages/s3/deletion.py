"""Delete many objects, and find out which would not go."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from snapstore.errors import StorageError
from snapstore.storages.s3.backoff import delays
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import translated

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ErrorTypeDef

BATCH = 1000
"""The most keys that one DeleteObjects request may hold; AWS refuses more."""

_PASSING: Final = ("InternalError", "ServiceUnavailable", "SlowDown")
_GONE: Final = ("NoSuchKey",)


def delete_objects(
    connection: S3Connection, bucket: str, keys: Sequence[str], *, attempts: int
) -> dict[str, str]:
    """Delete all keys; return those that would not go, each with the server's reason.

    A server answers 200 to a request of which it refused a part. Raises CredentialsError when a
    whole request is refused; one that fails otherwise counts as a reason for each of its keys.
    """
    refused: dict[str, str] = {}
    for first in range(0, len(keys), BATCH):
        batch = keys[first : first + BATCH]
        try:
            refused |= _delete_batch(connection, bucket, batch, attempts)
        except StorageError as error:
            refused |= dict.fromkeys(batch, error.message)
    return refused


def _delete_batch(
    connection: S3Connection, bucket: str, batch: Sequence[str], attempts: int
) -> dict[str, str]:
    refused: dict[str, str] = {}
    waits = delays(attempts)
    while batch:
        errors = _request(connection, bucket, batch)
        wait_s = next(waits, None)
        again = [error["Key"] for error in errors if error.get("Code") in _PASSING]
        refused |= {
            error["Key"]: f"{error.get('Message') or 'refused'} ({error.get('Code')})"
            for error in errors
            if error.get("Code") not in _GONE
            and (wait_s is None or error.get("Code") not in _PASSING)
        }
        if wait_s is None or not again:
            return refused
        batch = again
        time.sleep(wait_s)
    return refused


def _request(
    connection: S3Connection, bucket: str, batch: Sequence[str]
) -> "Sequence[ErrorTypeDef]":
    with translated(f"delete from s3://{bucket}"):
        answer = connection.run(
            lambda client: client.delete_objects(
                Bucket=bucket,
                Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True},
            )
        )
    return answer.get("Errors", [])

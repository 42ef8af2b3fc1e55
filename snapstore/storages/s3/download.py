"""Read an object, and go on where the connection broke."""

import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from snapstore.errors import ObjectNotFoundError, SnapstoreError, StorageError
from snapstore.storages.s3.backoff import delays
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import code_of, explained, status_of, translated

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

_READ_BYTES = 1 << 19
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(?:\d+|\*)")


class Download:
    """One read of one object. All its requests get the same version of it, or it fails."""

    def __init__(self, connection: S3Connection, bucket: str, key: str, *, attempts: int) -> None:
        self._connection = connection
        self._bucket = bucket
        self._key = key
        self._attempts = attempts
        self._etag: str | None = None
        self._action = f"read s3://{bucket}/{key}"

    def open_whole(self) -> "GetObjectOutputTypeDef":
        """Return the answer to a request for all of it, with its body not yet read."""
        return self._request({})

    def chunks(
        self, start: int, stop: int, opened: "GetObjectOutputTypeDef | None" = None
    ) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to before ``stop``.

        ``opened`` is an answer that begins at ``start``. Raises StorageError when the connection
        breaks ``attempts`` times in a row without a byte in between, or when the object is shorter.
        """
        position = start
        waits = delays(self._attempts)
        patience = self._connection.patience
        since = patience.now()
        while position < stop:
            before = position
            answer, opened = opened or self._request_range(position, stop), None
            with closing(answer["Body"]) as body:
                try:
                    while position < stop:
                        with patience.waiting():
                            chunk = body.read(min(_READ_BYTES, stop - position))
                            if not chunk:
                                break
                            patience.moved()
                        position += len(chunk)
                        yield chunk
                except (BotoCoreError, HTTPError, OSError) as error:
                    broken: Exception | None = error
                else:
                    broken = None
            if position == stop:
                return
            if position > before:
                waits, since = delays(self._attempts), patience.now()
            patience.require(
                since, f"cannot {self._action}: the connection broke at byte {position}"
            )
            wait_s = next(waits, None)
            if wait_s is None:
                raise StorageError(
                    f"cannot {self._action}: the connection broke at byte {position} of {stop}, "
                    f"{self._attempts} times",
                    hint="check the network, then run again",
                    position=position,
                ) from broken
            time.sleep(wait_s)

    def _request_range(self, position: int, stop: int) -> "GetObjectOutputTypeDef":
        request: dict[str, Any] = {"Range": f"bytes={position}-{stop - 1}"}
        if self._etag is not None:
            request["IfMatch"] = self._etag
        answer = self._request(request)
        got = _RANGE.fullmatch(answer.get("ContentRange", ""))
        if got is None and position == 0 and answer["ContentLength"] >= stop:
            return answer
        if got is None or (int(got[1]), int(got[2])) != (position, stop - 1):
            answer["Body"].close()
            raise StorageError(
                f"cannot {self._action}: asked for bytes {position} to {stop - 1}, got "
                f"{answer.get('ContentRange') or 'another part of it'}",
                hint="the object may be shorter than it was: run verify",
                size=answer["ContentLength"],
            )
        return answer

    def _request(self, request: dict[str, Any]) -> "GetObjectOutputTypeDef":
        with translated(self._action):
            try:
                answer = self._connection.run(
                    lambda client: client.get_object(Bucket=self._bucket, Key=self._key, **request)
                )
            except ClientError as error:
                raise self._explained(error) from error
        self._etag = answer.get("ETag")
        return answer

    def _explained(self, error: ClientError) -> SnapstoreError:
        code = code_of(error)
        if code in ("NoSuchKey", "404"):
            return ObjectNotFoundError(
                f"there is no s3://{self._bucket}/{self._key}", key=self._key
            )
        if status_of(error) == 412:
            return StorageError(f"cannot {self._action}: it was replaced while it was read")
        if status_of(error) == 416:
            return StorageError(
                f"cannot {self._action}: it is shorter than it was", hint="run verify"
            )
        if code == "InvalidObjectState":
            kept_as = self._storage_class()
            return explained(
                error,
                f"{self._action}, which is in storage class {kept_as}",
                hint="restore it from the archive with the tools of the provider, and keep the "
                "bucket's life-cycle rules away from the repository",
            )
        return explained(error, self._action)

    def _storage_class(self) -> str:
        with translated(self._action):
            head = self._connection.run(
                lambda client: client.head_object(Bucket=self._bucket, Key=self._key)
            )
        return head.get("StorageClass", "STANDARD")

"""Store bytes under a key, as a rule only if nobody else has taken it."""

import hashlib
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from snapstore.errors import StorageError
from snapstore.model.store import ByteSource
from snapstore.storages.checked import checked_chunks
from snapstore.storages.s3.backoff import delays
from snapstore.storages.s3.body import SourceBody, header
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import attempts_of, code_of, status_of, translated
from snapstore.storages.s3.multipart import MultipartUpload
from snapstore.storages.s3.options import MIB, S3Options
from snapstore.storages.s3.parts import plan_parts

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import PutObjectOutputTypeDef

MARK: Final = "snapstore-put"
_SMALL_BYTES: Final = MIB


class Uploader:
    """Puts into one bucket; keys are those of the bucket.

    ``server_checks``: the server is known to refuse a body without the SHA-256 sent with it.
    """

    server_checks = False

    def __init__(self, connection: S3Connection, bucket: str, options: S3Options) -> None:
        self._connection = connection
        self._bucket = bucket
        self._options = options
        self._settings = _settings(options)
        self._pool = ThreadPoolExecutor(options.connections, "snapstore-part")

    def close(self) -> None:
        self._pool.shutdown()

    def replace(self, key: str, body: bytes) -> None:
        """Store ``body`` whether or not the key is taken."""
        with translated(self._action(key)):
            self._put_bytes(key, body, hashlib.sha256(body).hexdigest())

    def claim(self, key: str, body: bytes) -> bool:
        """Store ``body`` if the key is free; False when it is taken.

        A request whose answer was lost is sent again and then meets its own object: each call marks
        its object, and so tells it from somebody else's.
        """
        sha256 = hashlib.sha256(body).hexdigest()
        mark = secrets.token_hex(16)
        repeated = False
        waits = delays(self._options.max_attempts)
        with translated(self._action(key)):
            while True:
                try:
                    self._put_bytes(key, body, sha256, IfNoneMatch="*", Metadata={MARK: mark})
                    return True
                except ClientError as error:
                    repeated = repeated or attempts_of(error) > 1
                    if status_of(error) == 412:
                        return repeated and self._has_mark(key, mark)
                    wait_s = next(waits, None)
                    # 409: another conditional put of this key is under way, and may yet fail.
                    if status_of(error) != 409 or wait_s is None:
                        raise
                repeated = True
                time.sleep(wait_s)

    def claim_file(
        self, key: str, source: ByteSource, sha256: str, size_of: Callable[[], int | None]
    ) -> int | None:
        """Store a content-named file if the key is free: None, else the size of what is there.

        All but small files are looked for first, since asking costs less than sending. ``size_of``
        looks; it returns None when the key is free. Raises CaptureError when the source is not what
        was announced.
        """
        if source.size > _SMALL_BYTES and (found := size_of()) is not None:
            return found
        waits = delays(self._options.max_attempts)
        with translated(self._action(key)):
            while True:
                try:
                    self._send_file(key, source, sha256)
                    return None
                except ClientError as error:
                    # The upload may be gone because it was completed and the answer got lost.
                    if status_of(error) not in (409, 412) and code_of(error) != "NoSuchUpload":
                        raise
                    cause = error
                found = size_of()
                if found is not None:
                    return found
                wait_s = next(waits, None)
                if wait_s is None:
                    raise StorageError(
                        f"cannot {self._action(key)}: the server says that it is there "
                        f"({code_of(cause)}), and then that it is not",
                        hint="run again later",
                    ) from cause
                time.sleep(wait_s)

    def refuses_wrong_checksum(self, key: str) -> bool:
        """Whether the server refuses a body that has not the SHA-256 sent with it.

        A body with the right one must be taken, or its error is raised: a server that refuses
        everything proves nothing. The object stays.
        """
        body = b"snapstore"
        right = hashlib.sha256(body).hexdigest()
        wrong = hashlib.sha256(b"something else").hexdigest()
        with translated(self._action(key)):
            self._put_bytes(key, body, right)
            try:
                self._put_bytes(key, body, wrong)
            except ClientError as error:
                if status_of(error) != 400:
                    raise
                return True
        return False

    def _send_file(self, key: str, source: ByteSource, sha256: str) -> None:
        if source.size <= _SMALL_BYTES:
            body = b"".join(checked_chunks(source, sha256, key))
            self._put_bytes(key, body, sha256, IfNoneMatch="*")
        elif source.size <= self._options.multipart_threshold:
            self._put_source(key, source, sha256)
        else:
            self._put_parts(key, source, sha256)

    def _put_bytes(self, key: str, body: bytes, sha256: str, **conditions: Any) -> None:
        self._connection.run(
            lambda client: client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ChecksumSHA256=header(sha256),
                **self._settings,
                **conditions,
            )
        )

    def _put_source(self, key: str, source: ByteSource, sha256: str) -> None:
        body = SourceBody(
            source,
            key,
            sha256,
            hashed=not self.server_checks,
            moved=self._connection.patience.moved,
        )

        def request(client: "S3Client") -> "PutObjectOutputTypeDef":
            body.seek(0)
            return client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body.as_file(),
                ContentLength=body.size,
                ChecksumSHA256=header(sha256),
                IfNoneMatch="*",
                **self._settings,
            )

        with body.failures_first():
            self._connection.run(request)

    def _put_parts(self, key: str, source: ByteSource, sha256: str) -> None:
        plan = plan_parts(
            source.size, part_size=self._options.part_size, max_parts=self._options.max_parts
        )
        upload = MultipartUpload(
            self._connection,
            source,
            sha256,
            bucket=self._bucket,
            key=key,
            settings=self._settings,
            hash_again=not self.server_checks,
        )
        upload.run(plan, self._pool, self._options.parts_in_flight)

    def _has_mark(self, key: str, mark: str) -> bool:
        head = self._connection.run(lambda client: client.head_object(Bucket=self._bucket, Key=key))
        return head["Metadata"].get(MARK) == mark

    def _action(self, key: str) -> str:
        return f"store s3://{self._bucket}/{key}"


def _settings(options: S3Options) -> dict[str, Any]:
    """Return what every new object is asked to have."""
    chosen = {
        "ServerSideEncryption": options.sse,
        "SSEKMSKeyId": options.sse_kms_key_id,
        "StorageClass": options.storage_class,
    }
    return {name: value for name, value in chosen.items() if value is not None}

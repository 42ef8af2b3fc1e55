"""Upload one large file in parts, and leave nothing behind when that fails."""

import hashlib
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from snapstore.errors import SnapstoreError
from snapstore.model.store import ByteSource
from snapstore.storages.checked import CheckedReader, require_hash
from snapstore.storages.s3.body import SourceBody, header
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.errors import code_of, explained, translated
from snapstore.storages.s3.parts import Part, PartPlan

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, UploadPartOutputTypeDef

_TOO_MANY_PARTS: Final = ("InvalidArgument", "InvalidPartNumber", "TooManyParts")
_NO_SUCH_UPLOAD: Final = ("NoSuchUpload", "404")


class _TooManyPartsError(Exception):
    """The server refused a part, maybe for its number."""

    def __init__(self, number: int, refusal: ClientError, action: str) -> None:
        super().__init__(number)
        self.number = number
        self.refusal = refusal
        self.action = action

    def explained(self) -> SnapstoreError:
        limit = self.number - 1
        hint = f"if it takes only {limit}, set repository.options.max_parts to {limit}"
        return explained(self.refusal, self.action, hint=hint)


class MultipartUpload:
    """One upload of one file to one key. ``settings`` are the storage class and the encryption.

    Without ``hash_again`` a part that changed after it was hashed is left for the server to refuse.
    """

    def __init__(
        self,
        connection: S3Connection,
        source: ByteSource,
        sha256: str,
        *,
        bucket: str,
        key: str,
        settings: Mapping[str, Any],
        hash_again: bool = True,
    ) -> None:
        self._connection = connection
        self._source = source
        self._sha256 = sha256
        self._bucket = bucket
        self._key = key
        self._settings = settings
        self._hash_again = hash_again
        self._stopped = threading.Event()
        self._upload_id = ""

    def run(self, plan: PartPlan, pool: Executor, in_flight: int) -> None:
        """Send the parts, ``in_flight`` at a time, and complete the upload if the key is free.

        Raises ClientError for what the server says about the completion (412: the key is taken),
        errors of our tree for everything before. Whatever is raised, the upload is aborted; where
        that fails too, the error carries a note.
        """
        with translated(f"store {self._place}"):
            created = self._connection.run(
                lambda client: client.create_multipart_upload(
                    Bucket=self._bucket,
                    Key=self._key,
                    ChecksumAlgorithm="SHA256",
                    **self._settings,
                )
            )
        self._upload_id = created["UploadId"]
        try:
            self._complete(self._send(plan, pool, in_flight))
        except BaseException as error:
            self._abort(error)
            raise

    @property
    def _place(self) -> str:
        return f"s3://{self._bucket}/{self._key}"

    def _send(self, plan: PartPlan, pool: Executor, in_flight: int) -> "list[CompletedPartTypeDef]":
        """Return the parts in order. After the first failure no further part is begun."""
        running: set[Future[CompletedPartTypeDef]] = set()
        sent: list[CompletedPartTypeDef] = []
        try:
            for part, sha256 in self._hashed(plan):
                if len(running) == in_flight:
                    running = _collected(running, sent)
                running.add(pool.submit(self._send_part, part, sha256, len(plan)))
            while running:
                running = _collected(running, sent)
        except _TooManyPartsError as error:
            # Parts before it are under way, and may be refused as well.
            first = min([error, *_refused(running)], key=lambda each: each.number)
            raise first.explained() from first.refusal
        finally:
            self._stopped.set()
            for future in running:
                future.cancel()
            wait(running)
        return sorted(sent, key=lambda part: part["PartNumber"])

    def _hashed(self, plan: PartPlan) -> Iterator[tuple[Part, str]]:
        """Yield each part with its hash; the last one only if the whole source has the right one.

        A part is read again when it is sent: no part is ever held in memory.
        """
        whole = hashlib.sha256()
        for part in plan:
            reader = CheckedReader(self._source, self._key, part.start, part.stop)
            while chunk := reader.next():
                whole.update(chunk)
            if part.stop == plan.size:
                require_hash(whole.hexdigest(), self._sha256, self._key)
            yield part, reader.hexdigest()

    def _send_part(self, part: Part, sha256: str, count: int) -> "CompletedPartTypeDef":
        body = SourceBody(
            self._source,
            self._key,
            sha256,
            start=part.start,
            stop=part.stop,
            hashed=self._hash_again,
            stopped=self._stopped,
            moved=self._connection.patience.moved,
        )

        def request(client: "S3Client") -> "UploadPartOutputTypeDef":
            body.seek(0)
            return client.upload_part(
                Bucket=self._bucket,
                Key=self._key,
                UploadId=self._upload_id,
                PartNumber=part.number,
                Body=body.as_file(),
                ContentLength=body.size,
                ChecksumSHA256=header(sha256),
            )

        action = f"store {self._place}, part {part.number} of {count}"
        with translated(action), body.failures_first():
            try:
                answer = self._connection.run(request)
            except ClientError as error:
                if part.number == 1 or code_of(error) not in _TOO_MANY_PARTS:
                    raise
                raise _TooManyPartsError(part.number, error, action) from error
        return {
            "PartNumber": part.number,
            "ETag": answer["ETag"],
            "ChecksumSHA256": header(sha256),
        }

    def _complete(self, parts: "list[CompletedPartTypeDef]") -> None:
        try:
            self._connection.run(
                lambda client: client.complete_multipart_upload(
                    Bucket=self._bucket,
                    Key=self._key,
                    UploadId=self._upload_id,
                    MultipartUpload={"Parts": parts},
                    IfNoneMatch="*",
                )
            )
        except BotoCoreError as error:
            with translated(f"complete {self._place}"):
                raise error

    def _abort(self, cause: BaseException) -> None:
        try:
            abort(self._connection, self._bucket, self._key, self._upload_id)
        except (BotoCoreError, ClientError) as error:
            cause.add_note(
                f"the unfinished upload {self._upload_id} of {self._place} is still there "
                f"({error}); prune removes it later"
            )


def abort(connection: S3Connection, bucket: str, key: str, upload_id: str) -> None:
    """Drop an upload with its parts; one that is gone already is no error."""
    try:
        connection.run(
            lambda client: client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
        )
    except ClientError as error:
        if code_of(error) not in _NO_SUCH_UPLOAD:
            raise


def _refused(running: "set[Future[CompletedPartTypeDef]]") -> list[_TooManyPartsError]:
    """Wait for parts to end, and return those that were refused for their number."""
    errors = [future.exception() for future in running]
    return [error for error in errors if isinstance(error, _TooManyPartsError)]


def _collected(
    running: "set[Future[CompletedPartTypeDef]]", sent: "list[CompletedPartTypeDef]"
) -> "set[Future[CompletedPartTypeDef]]":
    """Wait for the next parts to end and move them to ``sent``; raise what one of them raised."""
    done, left = wait(running, return_when=FIRST_COMPLETED)
    sent.extend(future.result() for future in done)
    return left

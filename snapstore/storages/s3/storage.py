"""Objects of one bucket below one prefix."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from botocore.exceptions import BotoCoreError, ClientError

from snapstore.errors import (
    BlobCorruptError,
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from snapstore.model.store import ByteSource
from snapstore.ports import Listener, ObjectStat, UnfinishedUpload
from snapstore.storages.s3.answers import from_storage
from snapstore.storages.s3.connection import S3Connection
from snapstore.storages.s3.deletion import Deletion
from snapstore.storages.s3.download import Download
from snapstore.storages.s3.errors import status_of, translated
from snapstore.storages.s3.listing import Listing
from snapstore.storages.s3.multipart import abort
from snapstore.storages.s3.options import S3Options, parse_url
from snapstore.storages.s3.upload import Uploader


class S3Storage:
    """Keeps objects in one bucket below one prefix; implements ObjectStorage,
    TellingStorage, ClockedStorage and VersioningStorage.

    Requests that fail for a while (503, 500, a broken connection) are repeated with growing random
    waits, ``options.max_attempts`` times in all. ETags are compared with themselves only: with
    encryption they are no hashes.
    """

    Options = S3Options

    def __init__(self, url: str, options: S3Options | None = None) -> None:
        self.options = options or S3Options()
        self.options.check()
        place = parse_url(url)
        self.url = place.url
        self._bucket = place.bucket
        self._prefix = place.prefix
        self._connection = S3Connection(self.options)
        self._uploader = Uploader(self._connection, self._bucket, self.options)
        self._deletion = Deletion(self._connection, self._bucket, self.options)
        self._listing = Listing(self._connection, self._bucket, self._prefix)
        self._bucket_seen = False

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        if not if_absent:
            self._uploader.replace(self._prefix + key, body)
        elif not self._uploader.claim(self._prefix + key, body):
            raise ObjectExistsError(f"{key} is there already", key=key)

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        def size_of() -> int | None:
            found = self.stat(key)
            return None if found is None else found.size

        size = self._uploader.claim_file(self._prefix + key, source, sha256, size_of)
        if size is None:
            return True
        if size != source.size:
            raise BlobCorruptError(
                f"{key} is in the repository with another size",
                hint="run verify",
                key=key,
                size=size,
                expected_size=source.size,
            )
        return False

    def get(self, key: str, *, limit_bytes: int) -> bytes:
        download = self._download(key)
        answer = download.open_whole()
        size = answer["ContentLength"]
        if size > limit_bytes:
            answer["Body"].close()
            raise ManifestInvalidError(
                f"{key} is larger than any object of its kind",
                key=key,
                size=size,
                limit_bytes=limit_bytes,
            )
        return b"".join(download.chunks(0, size, answer))

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        yield from self._download(key).chunks(start, stop)

    def stat(self, key: str) -> ObjectStat | None:
        with translated(f"look at {self._place(key)}"):
            try:
                head = self._connection.run(
                    lambda client: client.head_object(Bucket=self._bucket, Key=self._prefix + key)
                )
            except ClientError as error:
                if status_of(error) != 404:
                    raise
                self._require_absent(key, error)
                return None
        return ObjectStat(
            key=key,
            size=head["ContentLength"],
            modified_at=head["LastModified"],
            storage_class=head.get("StorageClass"),
        )

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectStat]:
        yield from self._listing.objects(prefix, start_after)

    def delete(self, keys: Sequence[str]) -> None:
        refused = self._deletion.delete([self._prefix + key for key in keys])
        if refused:
            failed = sorted(self._relative(key) for key in refused)
            first = f"cannot delete {failed[0]}: {refused[self._prefix + failed[0]]}"
            more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise StorageError(first + more, failed=failed)

    def unfinished_uploads(self) -> Iterator[UnfinishedUpload]:
        yield from self._listing.uploads()

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        with translated(f"abort the upload of {self._place(upload.key)}"):
            abort(self._connection, self._bucket, self._prefix + upload.key, upload.upload_id)

    def checks_checksums(self, key: str) -> bool:
        try:
            return self._uploader.refuses_wrong_checksum(self._prefix + key)
        finally:
            self.delete([key])

    def rely_on_checks(self) -> None:
        self._uploader.server_checks = True

    def listen(self, listener: Listener) -> None:
        self._connection.notes.listen(listener)

    def keeps_versions(self) -> bool:
        """Whether the bucket keeps what is deleted; seen by deletions where it may not be asked."""
        try:
            answer = self._connection.run(
                lambda client: client.get_bucket_versioning(Bucket=self._bucket)
            )
        except (BotoCoreError, ClientError, StorageError):
            return self._deletion.left_versions
        return answer.get("Status") == "Enabled" or self._deletion.left_versions

    def now(self, *, writing: bool) -> datetime | None:
        del writing  # each answer has the time
        ahead = self._connection.clock.ahead
        return None if ahead is None else datetime.now(UTC) - ahead

    def close(self) -> None:
        self._uploader.close()
        self._connection.close()

    def _download(self, key: str) -> Download:
        return Download(
            self._connection, self._bucket, self._prefix + key, attempts=self.options.max_attempts
        )

    def _require_absent(self, key: str, error: ClientError) -> None:
        """Raise unless a 404 is the storage's own and about the object.

        The answer to a HEAD does not say whether it is the bucket that is missing.
        """
        if not from_storage("", error.response["ResponseMetadata"]["HTTPHeaders"]):
            self._require_no_body(key)
        if not self._bucket_seen:
            self._connection.run(
                lambda client: client.list_objects_v2(
                    Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1
                )
            )
            self._bucket_seen = True

    def _require_no_body(self, key: str) -> None:
        """Ask for the object itself: what is no storage has a page for that, no document."""
        try:
            answer = self._download(key).open_whole()
        except ObjectNotFoundError:
            return
        answer["Body"].close()
        raise StorageError(
            f"cannot look at {self._place(key)}: the server says that it is not there, and sends it"
        )

    def _relative(self, key: str) -> str:
        return key.removeprefix(self._prefix)

    def _place(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

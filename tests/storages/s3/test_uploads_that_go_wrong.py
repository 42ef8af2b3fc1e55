"""What an upload does when server or network misbehave."""

import hashlib
import threading

import pytest

from snapstore.errors import CredentialsError, ObjectExistsError, StorageError
from snapstore.model.store import BytesSource
from snapstore.storages.s3 import S3Storage
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.storages.s3.conftest import MIB, OpenS3
from tests.support.s3_proxy import Change, Reply, Request, Rule, S3Proxy, first, s3_error

pytestmark = pytest.mark.slow


class Zeros:
    """A source of so many zero bytes that takes no memory."""

    def __init__(self, size: int) -> None:
        self.size = size

    def pread(self, length: int, position: int) -> bytes:
        return bytes(min(length, self.size - position))

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for _ in range(self.size // MIB):
            digest.update(bytes(MIB))
        digest.update(bytes(self.size % MIB))
        return digest.hexdigest()


def on_part(number: int, reply: Reply) -> Rule:
    return lambda request: reply if request.part == number else None


def on_put(reply: Reply) -> Rule:
    return lambda request: reply if request.method == "PUT" and not request.query else None


def lose_answer_to_put(request: Request) -> Change | None:
    if request.method == "PUT" and not request.query:
        return lambda reply: Reply(status=reply.status, lost=True)
    return None


def stored(storage: S3Storage, key: str, size: int) -> bytes:
    return b"".join(storage.read(key, start=0, stop=size))


def test_a_part_that_is_throttled_six_times_arrives_in_the_end_g69(
    proxy: S3Proxy, open_s3: OpenS3
) -> None:
    storage = open_s3(max_attempts=8)
    content = patterned(12 * MIB)
    proxy.rules.append(first(6, on_part(3, s3_error(503, "SlowDown"))))

    storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert stored(storage, "f", len(content)) == content
    assert len([request for request in proxy.requests if request.part == 3]) == 7


def test_a_part_that_is_always_throttled_ends_the_upload_and_says_so_g69(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    content = patterned(12 * MIB)
    proxy.rules.append(on_part(3, s3_error(503, "SlowDown")))

    with pytest.raises(StorageError, match=r"SlowDown, HTTP 503, 3 attempts") as caught:
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert caught.value.hint is not None
    assert list(storage.unfinished_uploads()) == []
    assert storage.stat("f") is None


def test_too_many_parts_for_this_server_names_limit_and_option_g72(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    source = Zeros(60 * MIB)

    later_parts = threading.Event()

    def only_ten(request: Request) -> Reply | None:
        if request.part == 11:
            assert later_parts.wait(60), "part 12 was to be refused before part 11"
        elif request.part == 12:
            later_parts.set()
        too_many = s3_error(400, "InvalidArgument", "Part number must be from 1 to 10")
        return too_many if request.part > 10 else None

    proxy.rules.append(only_ten)

    with pytest.raises(StorageError, match="InvalidArgument") as caught:
        storage.put_file("f", source, sha256=source.sha256)

    assert caught.value.hint == "if it takes only 10, set repository.options.max_parts to 10"
    assert "part 11 of 12" in caught.value.message
    assert list(storage.unfinished_uploads()) == []


def test_a_limit_of_parts_makes_the_parts_larger_g71(proxy: S3Proxy, open_s3: OpenS3) -> None:
    source = Zeros(55 * MIB)

    open_s3(max_parts=10).put_file("f", source, sha256=source.sha256)

    sent = sorted((request.part, len(request.body)) for request in proxy.requests if request.part)
    assert [number for number, _ in sent] == list(range(1, 11))
    assert {size for _, size in sent[:-1]} == {6 * MIB}


def test_after_a_part_failed_for_good_no_further_one_is_sent_g74(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    source = Zeros(50 * 5 * MIB)
    proxy.rules.append(on_part(2, s3_error(403, "AccessDenied")))

    with pytest.raises(CredentialsError, match="part 2 of 50"):
        storage.put_file("f", source, sha256=source.sha256)

    assert len([request for request in proxy.requests if request.part]) <= 8
    assert len(proxy.seen("DELETE", query="uploadId")) == 1
    assert list(storage.unfinished_uploads()) == []


def test_an_upload_that_cannot_be_aborted_is_noted_on_the_error(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    content = patterned(12 * MIB)
    proxy.rules.append(on_part(2, s3_error(403, "AccessDenied")))
    proxy.rules.append(
        lambda request: s3_error(403, "AccessDenied") if request.method == "DELETE" else None
    )

    with pytest.raises(CredentialsError) as caught:
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert "is still there" in caught.value.__notes__[0]
    left = list(storage.unfinished_uploads())
    assert [upload.key for upload in left] == ["f"]
    proxy.rules.clear()
    storage.abort_upload(left[0])
    storage.abort_upload(left[0])
    assert list(storage.unfinished_uploads()) == []


def test_an_interrupt_aborts_the_upload(proxy: S3Proxy, storage: S3Storage) -> None:
    class Interrupting(Zeros):
        def pread(self, length: int, position: int) -> bytes:
            if position >= 11 * MIB:
                raise KeyboardInterrupt
            return super().pread(length, position)

    source = Interrupting(20 * MIB)

    with pytest.raises(KeyboardInterrupt):
        storage.put_file("f", source, sha256=source.sha256)

    assert list(storage.unfinished_uploads()) == []


def test_uploads_of_other_prefixes_are_not_seen_g70(
    open_s3: OpenS3, proxy: S3Proxy, bucket: str
) -> None:
    foreign = S3Storage(f"s3://{bucket}/elsewhere", open_s3().options)
    content = patterned(12 * MIB)
    proxy.rules.append(on_part(2, s3_error(403, "AccessDenied")))
    proxy.rules.append(
        lambda request: s3_error(403, "AccessDenied") if request.method == "DELETE" else None
    )
    with pytest.raises(CredentialsError):
        foreign.put_file("f", BytesSource(content), sha256=sha256_of(content))
    proxy.rules.clear()

    assert [upload.key for upload in foreign.unfinished_uploads()] == ["f"]
    assert list(open_s3().unfinished_uploads()) == []
    for upload in foreign.unfinished_uploads():
        foreign.abort_upload(upload)
    foreign.close()


def test_an_etag_that_is_no_hash_is_no_failure_g76(proxy: S3Proxy, storage: S3Storage) -> None:
    content = patterned(100)
    encrypted = {
        "etag": '"d12b33cb96e431763224615d904dc600"',
        "x-amz-server-side-encryption": "aws:kms",
    }
    proxy.rules.append(
        lambda request: (
            (lambda reply: Reply(status=reply.status, headers={**reply.headers, **encrypted}))
            if request.method == "PUT"
            else None
        )
    )

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True
    assert stored(storage, "f", 100) == content


def test_encryption_is_asked_for_with_every_new_object(proxy: S3Proxy, open_s3: OpenS3) -> None:
    storage = open_s3(sse="aws:kms", sse_kms_key_id="key-1", storage_class="STANDARD_IA")
    content = patterned(6 * MIB)

    storage.put("a", b"x")
    storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    creating = [
        request
        for request in proxy.requests
        if (request.method, request.part) == ("PUT", 0) or "uploads" in request.query
    ]
    assert len(creating) == 2
    for request in creating:
        assert request.headers["x-amz-server-side-encryption"] == "aws:kms"
        assert request.headers["x-amz-server-side-encryption-aws-kms-key-id"] == "key-1"
        assert request.headers["x-amz-storage-class"] == "STANDARD_IA"
    found = storage.stat("f")
    assert found is not None
    assert found.storage_class == "STANDARD_IA"


@pytest.mark.parametrize("mode", ["when_required", "when_supported"])
@pytest.mark.parametrize("size", [100, 2 * MIB, 6 * MIB])
def test_no_upload_uses_checksum_trailers_g77(
    proxy: S3Proxy, open_s3: OpenS3, mode: str, size: int
) -> None:
    content = patterned(size)
    refused = s3_error(411, "MissingContentLength")
    proxy.rules.append(
        lambda request: (
            refused
            if "x-amz-trailer" in request.headers
            or "aws-chunked" in request.headers.get("content-encoding", "")
            else None
        )
    )
    storage = open_s3(checksum_mode=mode)

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True
    bodies = [request for request in proxy.seen("PUT") if request.body]
    assert all("x-amz-checksum-sha256" in request.headers for request in bodies)


def test_a_server_that_refuses_checksums_gets_a_hint_g77(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    proxy.rules.append(on_put(s3_error(411, "MissingContentLength")))

    with pytest.raises(StorageError, match="MissingContentLength") as caught:
        storage.put("k", b"x")

    assert caught.value.hint is not None
    assert "repository.options.checksum_mode" in caught.value.hint


def test_an_object_that_shows_up_late_counts_as_there_g80(proxy: S3Proxy, open_s3: OpenS3) -> None:
    storage = open_s3(max_attempts=4)
    content = patterned(100)
    storage.put_file("f", BytesSource(content), sha256=sha256_of(content))
    missing = Reply(status=404, headers={"x-amz-request-id": "1"})
    proxy.rules.append(first(2, lambda request: missing if request.method == "HEAD" else None))

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is False


def test_an_object_that_never_shows_up_is_a_failure_g80(proxy: S3Proxy, storage: S3Storage) -> None:
    content = patterned(100)
    storage.put_file("f", BytesSource(content), sha256=sha256_of(content))
    missing = Reply(status=404, headers={"x-amz-request-id": "1"})
    proxy.rules.append(lambda request: missing if request.method == "HEAD" else None)

    with pytest.raises(StorageError, match=r"that it is there .* and then that it is not"):
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))


@pytest.mark.parametrize("quoted", [True, False])
def test_part_tags_are_given_back_as_they_came_g81(
    proxy: S3Proxy, storage: S3Storage, quoted: bool
) -> None:
    content = patterned(6 * MIB)

    def spell(reply: Reply) -> Reply:
        tag = reply.headers["etag"].strip('"')
        headers = {**reply.headers, "etag": f'"{tag}"' if quoted else tag}
        return Reply(status=reply.status, headers=headers)

    proxy.rules.append(lambda request: spell if request.part else None)

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True
    assert stored(storage, "f", len(content)) == content


def test_a_put_whose_answer_was_lost_knows_its_own_object(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    proxy.rules.append(first(1, lose_answer_to_put))

    storage.put("k", b"mine", if_absent=True)

    assert len(proxy.seen("PUT")) == 2
    assert storage.get("k", limit_bytes=10) == b"mine"
    with pytest.raises(ObjectExistsError):
        storage.put("k", b"mine", if_absent=True)


def test_a_repeated_put_does_not_take_an_equal_object_for_its_own(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    storage.put("k", b"same", if_absent=True)
    proxy.rules.append(first(1, on_put(s3_error(500, "InternalError"))))

    with pytest.raises(ObjectExistsError):
        storage.put("k", b"same", if_absent=True)


def test_a_conflicting_put_is_tried_again(proxy: S3Proxy, storage: S3Storage) -> None:
    proxy.rules.append(first(2, on_put(s3_error(409, "ConditionalRequestConflict"))))
    storage.put("k", b"x", if_absent=True)
    proxy.rules[:] = [first(2, on_put(s3_error(409, "ConditionalRequestConflict")))]
    content = patterned(2 * MIB)

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True
    assert storage.get("k", limit_bytes=10) == b"x"


def test_a_put_that_always_conflicts_fails(proxy: S3Proxy, storage: S3Storage) -> None:
    proxy.rules.append(on_put(s3_error(409, "ConditionalRequestConflict")))

    with pytest.raises(StorageError, match="ConditionalRequestConflict"):
        storage.put("k", b"x", if_absent=True)
    assert len(proxy.seen("PUT")) == 3


def test_a_completion_whose_answer_was_lost_counts_as_stored(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    content = patterned(6 * MIB)
    proxy.rules.append(
        first(
            1,
            lambda request: (
                (lambda reply: Reply(status=reply.status, lost=True))
                if request.method == "POST" and "uploadId" in request.query
                else None
            ),
        )
    )

    storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert stored(storage, "f", len(content)) == content
    assert list(storage.unfinished_uploads()) == []


def test_a_connection_that_breaks_during_an_upload_is_made_again(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    content = patterned(3 * MIB)
    proxy.rules.append(first(2, on_put(Reply(status=200, lost=True))))

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True
    assert stored(storage, "f", len(content)) == content

"""What reading, listing and deleting do when server or network misbehave."""

from datetime import timedelta

import msgspec
import pytest

from snapstore.errors import CredentialsError, StorageError
from snapstore.storages.s3 import S3Storage
from snapstore.testing.storage_contract import patterned
from tests.storages.s3.conftest import MIB, OpenS3
from tests.support.s3_proxy import Change, Reply, Request, Rule, S3Proxy, first, s3_error


def cut_gets(after: int) -> Rule:
    def cut(reply: Reply) -> Reply:
        return msgspec.structs.replace(reply, cut_after=after)

    def rule(request: Request) -> Change | None:
        return cut if request.method == "GET" and "list-type" not in request.query else None

    return rule


def on(method: str, reply: Reply) -> Rule:
    return lambda request: reply if request.method == method else None


def test_a_read_that_was_cut_goes_on_where_it_broke_g75(proxy: S3Proxy, storage: S3Storage) -> None:
    content = patterned(1_000_000)
    storage.put("k", content)
    proxy.rules.append(first(1, cut_gets(996_037)))

    assert b"".join(storage.read("k", start=0, stop=len(content))) == content

    _, second = proxy.seen("GET")
    assert second.headers["range"].startswith("bytes=996037-")
    assert second.headers["if-match"]


def test_a_get_that_was_cut_goes_on_where_it_broke(proxy: S3Proxy, storage: S3Storage) -> None:
    content = patterned(1_000_000)
    storage.put("k", content)
    proxy.rules.append(first(2, cut_gets(400_000)))

    assert storage.get("k", limit_bytes=MIB) == content


def test_a_read_that_gets_nowhere_ends_with_an_error_g75(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    storage.put("k", patterned(1_000_000))
    proxy.rules.append(cut_gets(0))

    with pytest.raises(StorageError, match="broke at byte 0 of 1000000, 3 times"):
        list(storage.read("k", start=0, stop=1_000_000))
    assert len(proxy.seen("GET")) == 3


def test_a_read_does_not_go_on_in_another_version_of_the_object(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    storage.put("k", patterned(1_000_000))
    proxy.rules.append(first(1, cut_gets(500_000)))
    chunks = storage.read("k", start=0, stop=1_000_000)
    next(chunks)
    storage.put("k", bytes(1_000_000))

    with pytest.raises(StorageError, match="replaced while it was read"):
        list(chunks)


def test_a_server_that_ignores_the_range_is_not_believed(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    content = patterned(1000)
    storage.put("k", content)
    whole = Reply(status=200, body=content, headers={"etag": '"e"'})
    proxy.rules.append(on("GET", whole))

    assert b"".join(storage.read("k", start=0, stop=10)) == content[:10]
    with pytest.raises(StorageError, match="asked for bytes 5 to 9"):
        list(storage.read("k", start=5, stop=10))


@pytest.mark.slow
def test_a_slow_server_is_asked_again(proxy: S3Proxy, storage: S3Storage, open_s3: OpenS3) -> None:
    storage.put("k", b"x")
    late = Reply(status=500, delay_s=10)
    proxy.rules.append(first(1, on("GET", late)))

    # The second answer may be late as well, if the machine is busy.
    patient = open_s3(read_timeout=timedelta(seconds=1), max_attempts=8)
    assert patient.get("k", limit_bytes=10) == b"x"
    proxy.rules[:] = [on("GET", late)]
    impatient = open_s3(read_timeout=timedelta(seconds=1))
    with pytest.raises(StorageError, match="Read timeout") as caught:
        impatient.get("k", limit_bytes=10)
    assert caught.value.hint == "the server is slow: run again"


def test_an_archived_object_is_named_with_its_class_g79(proxy: S3Proxy, storage: S3Storage) -> None:
    storage.put("blobs/ab", b"x")

    def glacier(reply: Reply) -> Reply:
        headers = {**reply.headers, "x-amz-storage-class": "GLACIER"}
        return msgspec.structs.replace(reply, headers=headers)

    proxy.rules.append(on("GET", s3_error(403, "InvalidObjectState")))
    proxy.rules.append(lambda request: glacier if request.method == "HEAD" else None)

    with pytest.raises(
        StorageError, match=r"blobs/ab, which is in storage class GLACIER"
    ) as caught:
        storage.get("blobs/ab", limit_bytes=10)
    assert caught.value.hint is not None
    found = storage.stat("blobs/ab")
    assert found is not None
    assert found.storage_class == "GLACIER"


def test_a_refusal_inside_a_bulk_delete_is_found_and_named_g78(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    for key in ("a", "b", "c"):
        storage.put(key, b"")
    prefix = storage.url.removeprefix("s3://behind-proxy/")
    answer = (
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key>c</Key></Deleted>"
        f"<Error><Key>{prefix}/b</Key><Code>AccessDenied</Code><Message>No</Message></Error>"
        "</DeleteResult>"
    )
    proxy.rules.append(on("POST", Reply(status=200, body=answer.encode())))

    with pytest.raises(StorageError, match="cannot delete b: No") as caught:
        storage.delete(["a", "b", "c"])
    assert caught.value.facts["failed"] == ["b"]


def test_keys_whose_deletion_was_throttled_are_tried_again(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    storage.put("a", b"")
    prefix = storage.url.removeprefix("s3://behind-proxy/")
    answer = (
        f"<DeleteResult><Error><Key>{prefix}/a</Key><Code>SlowDown</Code></Error></DeleteResult>"
    )
    proxy.rules.append(first(1, on("POST", Reply(status=200, body=answer.encode()))))

    storage.delete(["a"])
    assert storage.stat("a") is None

    proxy.rules[:] = [on("POST", Reply(status=200, body=answer.encode()))]
    with pytest.raises(StorageError, match="SlowDown"):
        storage.delete(["a"])


def test_deletions_go_in_batches_of_a_thousand_and_one_bad_batch_stops_no_other(
    proxy: S3Proxy, open_s3: OpenS3
) -> None:
    storage = open_s3(max_attempts=1)
    keys = [f"k{number}" for number in range(2001)]
    storage.put("k2000", b"")
    proxy.rules.append(first(1, on("POST", s3_error(500, "InternalError"))))

    with pytest.raises(StorageError, match="and 999 more") as caught:
        storage.delete(keys)

    assert caught.value.facts["failed"] == sorted(keys[:1000])
    assert [request.body.count(b"<Key>") for request in proxy.seen("POST")] == [1000, 1000, 1]
    assert storage.stat("k2000") is None


def test_bulk_deletes_carry_the_header_that_older_servers_want(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    storage.delete(["a"])

    assert "content-md5" in proxy.seen("POST")[0].headers


def test_a_refused_delete_is_a_matter_of_credentials(proxy: S3Proxy, storage: S3Storage) -> None:
    proxy.rules.append(on("POST", s3_error(403, "AccessDenied")))

    with pytest.raises(CredentialsError, match="AccessDenied"):
        storage.delete(["a"])


def test_listing_asks_for_url_encoding_g86(proxy: S3Proxy, storage: S3Storage) -> None:
    list(storage.list("x/"))

    assert proxy.seen("GET")[0].query["encoding-type"] == "url"

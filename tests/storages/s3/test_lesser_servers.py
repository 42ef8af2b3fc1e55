"""Servers that lack a part of the protocol: one that can be done without, or one that cannot."""

from datetime import UTC, datetime

import msgspec
import pytest

from snapstore.errors import CredentialsError, StorageError, StorageUnfitError
from snapstore.model.report import Event, Noted
from snapstore.model.store import BytesSource
from snapstore.repository import Repository
from snapstore.storages.s3 import S3Storage
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.storages.s3.conftest import MIB, OpenS3
from tests.support.moto import keep_versions, make_bucket
from tests.support.s3_proxy import Change, Reply, Request, Rule, S3Proxy, first, s3_error

pytestmark = pytest.mark.slow

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)

NO_BULK_DELETE = {
    "not implemented": s3_error(501, "NotImplemented"),
    "no such method": s3_error(405, "MethodNotAllowed"),
    "not understood": s3_error(400, "MalformedXML"),
    "an argument": s3_error(400, "InvalidArgument"),
    "nothing at all": Reply(status=501),
    "no answer to it": Reply(status=200),
    "a page": Reply(status=200, headers={"content-type": "text/html"}, body=b"<html/>"),
}


def on_bulk_delete(reply: Reply) -> Rule:
    return lambda request: reply if request.method == "POST" and "delete" in request.query else None


def on_conditional_put(reply: Reply) -> Rule:
    return lambda request: reply if "if-none-match" in request.headers else None


def on_removal(request: Request) -> Change | None:
    """Let the server do it, and say 200."""
    if request.method != "DELETE":
        return None
    return lambda reply: msgspec.structs.replace(reply, status=200)


def told(storage: S3Storage) -> list[str]:
    heard: list[Event] = []
    storage.listen(heard.append)
    return [event.message for event in heard if isinstance(event, Noted)]


@pytest.mark.parametrize("reply", NO_BULK_DELETE.values(), ids=NO_BULK_DELETE)
def test_a_server_without_bulk_delete_gets_a_request_for_each_object_h36(
    proxy: S3Proxy, open_s3: OpenS3, reply: Reply
) -> None:
    storage = open_s3(max_attempts=1)
    keys = [f"a/{number}" for number in range(20)]
    for key in keys:
        storage.put(key, b"x")
    proxy.rules.append(on_bulk_delete(reply))

    storage.delete([*keys, "gone"])

    assert list(storage.list("a/")) == []
    assert len(proxy.seen("DELETE")) == 21
    if reply.status != 200:
        assert ["one request" in note for note in told(storage)] == [True]
        proxy.requests.clear()
        storage.delete(["gone"])
        assert not proxy.seen("POST")


def test_a_server_may_say_200_to_what_is_removed(proxy: S3Proxy, open_s3: OpenS3) -> None:
    storage = open_s3(max_attempts=1, multipart_threshold=5 * MIB)
    storage.put("a", b"x")
    content = patterned(6 * MIB)
    proxy.rules.append(on_bulk_delete(s3_error(501, "NotImplemented")))
    proxy.rules.append(on_removal)
    proxy.rules.append(lambda request: s3_error(403, "AccessDenied") if request.part == 2 else None)

    storage.delete(["a"])
    with pytest.raises(CredentialsError) as caught:
        storage.put_file("b", BytesSource(content), sha256=sha256_of(content))

    assert [request.query.keys() for request in proxy.seen("DELETE")] == [set(), {"uploadId"}]
    assert not hasattr(caught.value, "__notes__")
    assert list(storage.list("")) == []
    assert list(storage.unfinished_uploads()) == []


def test_a_deletion_that_a_server_does_not_speak_of_is_made_sure_of_h09(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    for key in ("a", "b"):
        storage.put(key, b"")
    prefix = storage.url.removeprefix("s3://behind-proxy/")
    some = f"<DeleteResult><Deleted><Key>{prefix}/a</Key></Deleted></DeleteResult>"
    proxy.rules.append(on_bulk_delete(Reply(status=200, body=some.encode())))

    storage.delete(["a", "b"])

    assert [request.path.rpartition("/")[2] for request in proxy.seen("DELETE")] == ["b"]
    assert storage.stat("b") is None


def test_an_object_that_goes_neither_way_is_named_h36(proxy: S3Proxy, open_s3: OpenS3) -> None:
    storage = open_s3(max_attempts=1)
    proxy.rules.append(on_bulk_delete(s3_error(501, "NotImplemented")))
    proxy.rules.append(
        lambda request: s3_error(500, "InternalError") if request.path.endswith("/b") else None
    )

    with pytest.raises(StorageError, match="cannot delete b") as caught:
        storage.delete(["a", "b"])
    assert caught.value.facts["failed"] == ["b"]


def test_a_missing_right_to_delete_is_not_taken_for_a_missing_request_h36(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    proxy.rules.append(on_bulk_delete(s3_error(403, "AccessDenied")))

    with pytest.raises(CredentialsError, match="AccessDenied"):
        storage.delete(["a"])
    assert proxy.seen("DELETE") == []


@pytest.mark.parametrize("mode", ["when_required", "when_supported"])
def test_a_bulk_delete_carries_only_the_checksum_that_is_asked_for_h36(
    proxy: S3Proxy, open_s3: OpenS3, mode: str
) -> None:
    open_s3(checksum_mode=mode).delete(["a"])

    (request,) = proxy.seen("POST")
    newer = [name for name in request.headers if "checksum" in name]
    assert ("content-md5" in request.headers, bool(newer)) == (
        (True, False) if mode == "when_required" else (False, True)
    )


@pytest.mark.parametrize(
    "refusal",
    [
        s3_error(501, "NotImplemented", "A header you provided implies functionality"),
        s3_error(400, "InvalidArgument"),
        s3_error(400, "InvalidRequest"),
        s3_error(405, "MethodNotAllowed"),
        s3_error(500, "InternalError"),
        Reply(status=412),
    ],
)
def test_a_storage_that_refuses_conditional_puts_is_unfit_for_a_repository_h36(
    proxy: S3Proxy, open_s3: OpenS3, refusal: Reply
) -> None:
    storage = open_s3(max_attempts=1)
    proxy.rules.append(on_conditional_put(refusal))

    with pytest.raises(StorageUnfitError) as caught:
        Repository.create(storage, created_at=NOW, accept_unverified_uploads=True)

    assert caught.value.hint is not None
    proxy.rules.clear()
    assert list(storage.list("")) == []


def test_a_storage_that_takes_conditional_puts_a_moment_later_is_fit_h36(
    proxy: S3Proxy, open_s3: OpenS3
) -> None:
    storage = open_s3(max_attempts=1)
    proxy.rules.append(first(1, on_conditional_put(s3_error(503, "SlowDown"))))

    Repository.create(storage, created_at=NOW, accept_unverified_uploads=True)


def test_a_server_that_lacks_what_every_write_needs_is_unfit_and_not_away_h39(
    proxy: S3Proxy, open_s3: OpenS3
) -> None:
    storage = open_s3()
    proxy.rules.append(on_conditional_put(s3_error(501, "NotImplemented")))
    content = patterned(2 * MIB)

    for write in (
        lambda: storage.put("k", b"x", if_absent=True),
        lambda: storage.put_file("f", BytesSource(b"x"), sha256=sha256_of(b"x")),
        lambda: storage.put_file("f", BytesSource(content), sha256=sha256_of(content)),
    ):
        with pytest.raises(StorageUnfitError):
            write()
    assert len(proxy.seen("PUT")) == 3


def versioning(request: Request) -> Reply | None:
    return s3_error(403, "AccessDenied") if "versioning" in request.query else None


@pytest.mark.parametrize("asked", [True, False])
def test_a_bucket_that_keeps_versions_is_known_h46(
    proxy: S3Proxy, moto_url: str, open_s3: OpenS3, asked: bool
) -> None:
    bucket = f"versions-{asked}".lower()
    make_bucket(moto_url, bucket)
    storage = S3Storage(f"s3://{bucket}", open_s3().options)
    if not asked:
        proxy.rules.append(versioning)
    storage.put("before", b"x")
    storage.delete(["before"])
    assert storage.keeps_versions() is False

    keep_versions(moto_url, bucket)
    storage.put("k", b"x")
    storage.delete(["k"])

    assert storage.keeps_versions() is True
    storage.close()

"""An answer that S3 would never give is no answer: each request, with what can be wrong in it."""

import re
from collections.abc import Callable

import msgspec
import pytest

from snapstore.errors import CredentialsError, StorageError
from snapstore.model.store import BytesSource
from snapstore.storages.s3 import S3Storage
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.storages.s3.conftest import BUCKET, MIB, OpenS3
from tests.support.s3_proxy import Change, Reply, Request, Rule, S3Proxy, first, s3_error

pytestmark = pytest.mark.slow

PAGE = Reply(status=200, headers={"content-type": "text/html"}, body=b"<html><p>Welcome</p></html>")
EMPTY = Reply(status=200)
FOREIGN_404 = Reply(status=404, headers={"content-type": "text/html"}, body=b"<html>nginx</html>")

Does = Callable[[S3Storage], object]
IsIt = Callable[[Request], bool]


def is_list(request: Request) -> bool:
    return request.method == "GET" and "list-type" in request.query


def is_get(request: Request) -> bool:
    return request.method == "GET" and not request.query


def is_head(request: Request) -> bool:
    return request.method == "HEAD"


def is_put(request: Request) -> bool:
    return request.method == "PUT" and not request.query


def is_part(request: Request) -> bool:
    return request.part > 0


def is_create(request: Request) -> bool:
    return request.method == "POST" and "uploads" in request.query


def is_complete(request: Request) -> bool:
    return request.method == "POST" and "uploadId" in request.query


def is_uploads(request: Request) -> bool:
    return request.method == "GET" and "uploads" in request.query


def is_bulk_delete(request: Request) -> bool:
    return request.method == "POST" and "delete" in request.query


def is_delete(request: Request) -> bool:
    return request.method == "DELETE"


def on(is_it: IsIt, act: Reply | Change) -> Rule:
    return lambda request: act if is_it(request) else None


def without(header: str) -> Change:
    def change(reply: Reply) -> Reply:
        kept = {name: value for name, value in reply.headers.items() if name != header}
        return msgspec.structs.replace(reply, headers=kept, unsized=header == "content-length")

    return change


def with_header(name: str, value: str) -> Change:
    return lambda reply: msgspec.structs.replace(reply, headers={**reply.headers, name: value})


def body(pattern: str, by: str) -> Change:
    """Replace a piece of the body; the length is told anew."""

    def change(reply: Reply) -> Reply:
        text, count = re.subn(pattern, by, reply.body.decode(), flags=re.DOTALL)
        assert count, f"{pattern} is not in {reply.body!r}"
        headers = {key: value for key, value in reply.headers.items() if key != "content-length"}
        return msgspec.structs.replace(reply, headers=headers, body=text.encode())

    return change


def cut_body(reply: Reply) -> Reply:
    """Give the first half as if it were all."""
    headers = {key: value for key, value in reply.headers.items() if key != "content-length"}
    return msgspec.structs.replace(reply, headers=headers, body=reply.body[: len(reply.body) // 2])


def stores_a_file(size: int) -> Does:
    content = patterned(size)
    return lambda storage: storage.put_file("new", BytesSource(content), sha256=sha256_of(content))


LISTS: Does = lambda storage: list(storage.list("a/"))  # noqa: E731
GETS: Does = lambda storage: storage.get("a/1", limit_bytes=100)  # noqa: E731
READS: Does = lambda storage: list(storage.read("a/1", start=0, stop=5))  # noqa: E731
LOOKS: Does = lambda storage: storage.stat("a/1")  # noqa: E731
PUTS: Does = lambda storage: storage.put("new", b"x")  # noqa: E731
CLAIMS: Does = lambda storage: storage.put("new", b"x", if_absent=True)  # noqa: E731
DELETES: Does = lambda storage: storage.delete(["a/1", "a/2"])  # noqa: E731
UPLOADS: Does = lambda storage: list(storage.unfinished_uploads())  # noqa: E731

CASES = [
    *(
        pytest.param(LISTS, is_list, change, id=f"list: {name}")
        for name, change in {
            "empty": EMPTY,
            "a page": PAGE,
            "a well-formed page": msgspec.structs.replace(PAGE, body=b"<html/>"),
            "204": Reply(status=204),
            "an error in a 200": s3_error(200, "InternalError"),
            "half of it": cut_body,
            "nothing but the root": body(r"(<ListBucketResult[^>]*>).*(</List)", r"\1\2"),
            "no IsTruncated": body("<IsTruncated>.*</IsTruncated>", ""),
            "another IsTruncated": body("<IsTruncated>.*</IsTruncated>", "<IsTruncated/>"),
            "no bucket": body("<Name>.*</Name>", ""),
            "another bucket": body("<Name>.*</Name>", "<Name>others</Name>"),
            "another prefix": body("<Prefix>.*</Prefix>", "<Prefix>x/</Prefix>"),
            "no prefix": body("<Prefix>.*</Prefix>", "<Prefix></Prefix>"),
            "a key of others": body(r"a/1</Key>", "b/1</Key>"),
            "a foreign key": body(r"<Key>[^<]*a/1</Key>", "<Key>1</Key>"),
            "a key without size": body("<Size>.*?</Size>", ""),
            "a size that is none": body("<Size>.*?</Size>", "<Size>x</Size>"),
            "a key without time": body("<LastModified>.*?</LastModified>", ""),
            "a time that is none": body("<LastModified>.*?</", "<LastModified>never</"),
            "no key": body("<Key>.*?</Key>", ""),
            "a key twice": body("a/2</Key>", "a/1</Key>"),
            "out of order": body("a/1</Key>", "a/3</Key>"),
            "cut, and no token": body("<IsTruncated>.*</IsT", "<IsTruncated>true</IsT"),
            "pages in a circle": body(
                "<IsTruncated>.*</IsTruncated>",
                "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
            ),
            "empty pages in a circle": body(
                r"<IsTruncated>.*</IsTruncated>.*(</ListBucketResult>)",
                "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
                r"\1",
            ),
            "404 of others": FOREIGN_404,
            "404 and nothing": Reply(status=404),
        }.items()
    ),
    *(
        pytest.param(does, is_get, change, id=f"{verb}: {name}")
        for verb, does in {"get": GETS, "read": READS}.items()
        for name, change in {
            "empty": EMPTY,
            "a page": PAGE,
            "a page with a tag": with_header("content-type", "text/html; charset=utf-8"),
            "no tag": without("etag"),
            "no length": without("content-length"),
            "204": Reply(status=204),
            "compressed on the way": with_header("content-encoding", "gzip"),
            "404 of others": FOREIGN_404,
            "404 and nothing": Reply(status=404),
        }.items()
    ),
    pytest.param(GETS, is_get, with_header("content-range", "bytes 0-4/9"), id="get: a part"),
    pytest.param(READS, is_get, with_header("content-range", "bytes 1-5/9"), id="read: others"),
    pytest.param(READS, is_get, cut_body, id="read: a short body that fits its length"),
    *(
        pytest.param(LOOKS, is_head, change, id=f"look: {name}")
        for name, change in {
            "empty": EMPTY,
            "a page": with_header("content-type", "text/html"),
            "no tag": without("etag"),
            "no length": without("content-length"),
            "no time": without("last-modified"),
            "a time that is none": with_header("last-modified", "never"),
            "a length that is none": with_header("content-length", "-5"),
            "204": Reply(status=204),
        }.items()
    ),
    *(
        pytest.param(does, is_put, change, id=f"{verb}: {name}")
        for verb, does in {
            "put": PUTS,
            "claim": CLAIMS,
            "small file": stores_a_file(100),
            "file": stores_a_file(2 * MIB),
        }.items()
        for name, change in {
            "empty": EMPTY,
            "a page": PAGE,
            "204": Reply(status=204),
            "404 of others": FOREIGN_404,
        }.items()
    ),
    *(
        pytest.param(stores_a_file(6 * MIB), is_it, change, id=f"parts: {name}")
        for name, is_it, change in (
            ("begun, empty", is_create, EMPTY),
            ("begun, a page", is_create, PAGE),
            ("begun, no id", is_create, body("<UploadId>.*</UploadId>", "")),
            ("begun, another key", is_create, body("<Key>.*</Key>", "<Key>x</Key>")),
            ("begun, another bucket", is_create, body("<Bucket>.*</Bucket>", "<Bucket>x</Bucket>")),
            ("sent, no tag", is_part, without("etag")),
            ("sent, a page", is_part, PAGE),
            ("completed, empty", is_complete, EMPTY),
            ("completed, a page", is_complete, PAGE),
            ("completed, an error in a 200", is_complete, s3_error(200, "InternalError")),
            ("completed, half of it", is_complete, cut_body),
            ("completed, another key", is_complete, body("<Key>.*</Key>", "<Key>x</Key>")),
            ("completed, 404 of others", is_complete, FOREIGN_404),
        )
    ),
    *(
        pytest.param(UPLOADS, is_uploads, change, id=f"uploads: {name}")
        for name, change in {
            "empty": EMPTY,
            "a page": PAGE,
            "no IsTruncated": body("<IsTruncated>.*</IsTruncated>", ""),
            "another bucket": body("<Bucket>.*</Bucket>", "<Bucket>x</Bucket>"),
            "cut, and no marker": body("<IsTruncated>.*</IsT", "<IsTruncated>true</IsT"),
            "404 of others": FOREIGN_404,
        }.items()
    ),
]


@pytest.fixture
def filled(proxy: S3Proxy, open_s3: OpenS3) -> S3Storage:
    """A place with two objects; every request is sent once."""
    storage = open_s3(max_attempts=1)
    for key in ("a/1", "a/2"):
        storage.put(key, b"0123456789")
    assert storage.stat("not there") is None
    return storage


@pytest.mark.parametrize(("does", "is_it", "change"), CASES)
def test_a_malformed_answer_is_unavailable_h09(
    proxy: S3Proxy, filled: S3Storage, does: Does, is_it: IsIt, change: Reply | Change
) -> None:
    proxy.rules.append(on(is_it, change))

    with pytest.raises(StorageError):
        does(filled)

    proxy.rules.clear()
    assert [each.key for each in filled.list("a/")] == ["a/1", "a/2"]


@pytest.mark.parametrize(
    ("does", "is_it", "change"), [case for case in CASES if "list: empty" in str(case.id)]
)
def test_a_malformed_answer_is_asked_for_again_h09(
    proxy: S3Proxy, open_s3: OpenS3, does: Does, is_it: IsIt, change: Reply | Change
) -> None:
    storage = open_s3(max_attempts=3)
    storage.put("a/1", b"x")
    proxy.rules.append(first(1, on(is_it, change)))

    assert [each.key for each in storage.list("a/")] == ["a/1"]


def test_an_empty_listing_is_told_with_who_sent_it_h09(proxy: S3Proxy, filled: S3Storage) -> None:
    proxy.rules.append(on(is_list, PAGE))

    with pytest.raises(StorageError) as caught:
        LISTS(filled)

    assert f"{proxy.url} answered with text/html" in caught.value.message
    assert caught.value.hint is not None
    assert "repository.options.endpoint_url" in caught.value.hint


@pytest.mark.parametrize("answer", [FOREIGN_404, Reply(status=404)])
def test_only_the_storage_itself_says_that_something_is_not_there_h49(
    proxy: S3Proxy, filled: S3Storage, answer: Reply
) -> None:
    proxy.rules.append(lambda _: answer)

    for attempt in (GETS, READS, LOOKS, LISTS, lambda each: each.stat("not there")):
        with pytest.raises(StorageError, match="NotFromStorage") as caught:
            attempt(filled)
        assert proxy.url in caught.value.message


@pytest.mark.parametrize("number", [301, 302, 307, 308])
@pytest.mark.parametrize("body", [b"", b"<html>moved</html>", b"<html/>"])
def test_a_redirect_of_a_proxy_is_told_with_its_ends_and_followed_by_nobody_h72(
    proxy: S3Proxy, filled: S3Storage, number: int, body: bytes
) -> None:
    moved = Reply(status=number, headers={"location": "https://s3.example:9/k?a=1"}, body=body)
    proxy.rules.append(lambda _: moved)
    proxy.requests.clear()

    for attempt in (GETS, LOOKS, LISTS, PUTS, CLAIMS):
        with pytest.raises(CredentialsError) as caught:
            attempt(filled)
        assert f"{proxy.url} redirects to https://s3.example:9 " in caught.value.message
        assert caught.value.hint is not None
        assert "repository.options.endpoint_url" in caught.value.hint
    assert len(proxy.requests) == 5


def test_a_bucket_that_answers_by_another_name_is_not_believed_h09(
    proxy: S3Proxy, filled: S3Storage
) -> None:
    proxy.rules.append(on(is_list, body(f"<Name>{BUCKET}</Name>", "<Name>backup</Name>")))

    with pytest.raises(StorageError, match="the bucket 'backup', not 'behind-proxy'"):
        LISTS(filled)

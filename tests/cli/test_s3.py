"""Every verb on S3 when what answers is not the storage, or nothing does."""

import itertools
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.answer import Answer
from tests.support.moto import keep_versions, make_bucket
from tests.support.s3_proxy import Reply, Request, S3Proxy, s3_error, s3_proxy

pytestmark = pytest.mark.slow

_NUMBERS = itertools.count()

VERBS: dict[str, tuple[str, ...]] = {
    "init": ("init", "--exist-ok"),
    "snapshot": ("snapshot", "--state-dir", "STATE", "--task", "1_0"),
    "list": ("list",),
    "show": ("show", "ks440-alos/count:0"),
    "diff": ("diff", "ks440-alos/count:0", "ks440-alos/count:0"),
    "restore": ("restore", "--application", "ks440-alos", "--target", "new", "--if-exists"),
    "verify": ("verify",),
    "verify --catalog": ("verify", "--catalog"),
    "prepare": ("prepare", "--state-dir", "new", "--application", "ks440-alos"),
    "status": ("status",),
    "drill": ("drill", "ks440-alos/count:0"),
    "pin": ("pin", "ks440-alos/count:0"),
    "unpin": ("unpin", "ks440-alos/count:0"),
    "delete": ("delete", "ks440-alos/count:0", "--yes"),
    "prune": ("prune",),
    "prune --dry-run": ("prune", "--dry-run"),
    "repair": ("repair",),
    "repair --dry-run": ("repair", "--dry-run"),
}


class OnS3:
    """The command line, with a repository behind a proxy; each request is sent once."""

    def __init__(self, cli: Cli, folder: Path, state_dir: Path, bucket: str) -> None:
        self.bucket = bucket
        self._cli = cli
        self._folder = folder
        self._state_dir = str(state_dir)
        self.endpoint_url = ""

    def __call__(self, *arguments: str, options: str = "max_attempts: 1") -> Answer:
        config = self._folder / "s3.yaml"
        config.write_text(
            f"repository:\n  url: s3://{self.bucket}/p\n  accept_unverified_uploads: true\n"
            f"  options: {{endpoint_url: '{self.endpoint_url}', {options}}}\n"
            f"state: {{cache_dir: '{self._folder / 'cache'}'}}\n"
        )
        chosen = [self._state_dir if each == "STATE" else each for each in arguments]
        return self._cli(*chosen, "-c", config)


@pytest.fixture
def proxy(moto_url: str, s3_credentials: None) -> Iterator[S3Proxy]:
    with s3_proxy(moto_url) as running:
        yield running


@pytest.fixture
def on_s3(cli: Cli, tmp_path: Path, state_dir: Path, proxy: S3Proxy, moto_url: str) -> OnS3:
    """A repository with one snapshot of every store of one task."""
    bucket = f"verbs-{next(_NUMBERS)}"
    make_bucket(moto_url, bucket)
    runner = OnS3(cli, tmp_path, state_dir, bucket)
    runner.endpoint_url = proxy.url
    assert runner("init").code == 0
    assert runner("snapshot", "--state-dir", "STATE", "--task", "1_0").code == 0
    return runner


def no_listing(request: Request) -> Reply | None:
    return Reply(status=200) if "list-type" in request.query else None


def test_no_verb_takes_an_empty_answer_for_an_empty_repository_h09(
    on_s3: OnS3, proxy: S3Proxy
) -> None:
    proxy.rules.append(no_listing)

    for verb in VERBS.keys() - {"init", "pin", "unpin"}:
        answer = on_s3(*VERBS[verb])

        assert answer.code in (3, 12), f"{verb}: {answer.err}{answer.out}"
        assert "IncompleteAnswer" in answer.err + answer.out
        assert proxy.url in answer.err + answer.out


@pytest.mark.parametrize("status", [404, 200])
def test_no_verb_takes_a_page_for_the_word_of_the_storage_h49(
    on_s3: OnS3, proxy: S3Proxy, status: int
) -> None:
    page = Reply(status=status, headers={"content-type": "text/html"}, body=b"<html>nginx</html>")
    proxy.rules.append(lambda _: page)

    for verb, line in VERBS.items():
        answer = on_s3(*line)

        assert answer.code == 12, f"{verb}: {answer.err}{answer.out}"
        assert answer.err.count("error:") == 1
        assert f"{proxy.url} answered with text/html" in answer.err


def test_blobs_behind_a_page_are_unavailable_and_no_damage_h49(on_s3: OnS3, proxy: S3Proxy) -> None:
    page = Reply(status=404, headers={"content-type": "text/html"}, body=b"<html>nginx</html>")
    proxy.rules.append(lambda request: page if "/blobs/" in request.path else None)

    for verb in (("verify", "--read-data"), (*VERBS["restore"], "--allow-unchecked-changelog")):
        answer = on_s3(*verb)

        assert answer.code == 12, answer.err + answer.out
        assert answer.err.count("cannot read s3://") == 1
        assert "missing" not in answer.err + answer.out


def test_every_verb_gives_a_silent_storage_up_h34(on_s3: OnS3) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        on_s3.endpoint_url = f"http://127.0.0.1:{server.getsockname()[1]}"

        for verb, line in VERBS.items():
            answer = on_s3(*line, options="give_up_after: 300ms, max_attempts: 100")

            assert answer.code == 12, f"{verb}: {answer.err}{answer.out}"
            assert f"no answer from {on_s3.endpoint_url}" in answer.err
            assert "repository.options.give_up_after" in answer.err


def test_a_redirect_to_elsewhere_is_final_and_names_both_ends_h72(
    on_s3: OnS3, proxy: S3Proxy
) -> None:
    moved = Reply(status=308, headers={"location": proxy.url.replace("http:", "https:")})
    proxy.rules.append(lambda _: moved)

    for verb in (VERBS["list"], VERBS["init"]):
        answer = on_s3(*verb)

        assert answer.code == 2
        assert f"{proxy.url} redirects to https://127.0.0.1:" in answer.err


def test_a_prune_without_the_right_to_list_uploads_is_done_and_says_so_h36(
    on_s3: OnS3, proxy: S3Proxy
) -> None:
    assert on_s3("snapshot", "--state-dir", "STATE", "--task", "1_0").code == 0
    proxy.rules.append(
        lambda request: s3_error(403, "AccessDenied") if "uploads" in request.query else None
    )

    for more in (("--dry-run",), ()):
        answer = on_s3("prune", "--keep-last", "1", *more)

        assert answer.code == 0, answer.err
        assert "note: unfinished uploads were left: " in answer.err
        assert "AbortIncompleteMultipartUpload" in answer.err
        assert "removed" in answer.out
    answer = on_s3("prune", "--json")
    assert any("unfinished uploads" in note for note in answer.document["notes"])


def test_a_prune_of_a_bucket_that_keeps_versions_claims_to_free_nothing_h46(
    on_s3: OnS3, proxy: S3Proxy, moto_url: str
) -> None:
    keep_versions(moto_url, on_s3.bucket)

    for more in (("--dry-run",), ()):
        answer = on_s3("prune", *more)
        assert answer.code == 0
        assert "the bucket keeps old versions" in answer.err
    document = on_s3("prune", "--json").document
    assert document["freed_bytes"] == 0
    assert document["kept_as_versions"]["size_bytes"] == 0


def test_what_no_repetition_cures_is_final_h39(on_s3: OnS3, proxy: S3Proxy) -> None:
    for refusal, code in (
        (s3_error(403, "AccessDenied"), 2),
        (s3_error(403, "InvalidAccessKeyId"), 2),
        (s3_error(403, "SignatureDoesNotMatch"), 2),
        (s3_error(400, "ExpiredToken"), 2),
        (s3_error(404, "NoSuchBucket"), 2),
        (s3_error(403, "RequestTimeTooSkewed"), 2),
        (s3_error(501, "NotImplemented"), 5),
        (s3_error(503, "SlowDown"), 12),
        (s3_error(500, "InternalError"), 12),
    ):
        proxy.rules[:] = [lambda _, refusal=refusal: refusal]  # type: ignore[misc]
        for verb in ("init", "list", "snapshot"):
            answer = on_s3(*VERBS[verb])
            assert answer.code == code, f"{verb}: {answer.err}"

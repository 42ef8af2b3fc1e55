"""Credentials, regions, proxies, certificates, and how buckets are addressed."""

import json
import sys
from pathlib import Path

import pytest

from snapstore.errors import ConfigError, CredentialsError, StorageError
from snapstore.model.store import BytesSource
from snapstore.storages.s3 import S3Options, S3Storage
from snapstore.storages.s3.connection import S3Connection
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.storages.s3.conftest import BUCKET, MIB, OpenS3
from tests.support.certificates import make_certificates
from tests.support.moto import make_bucket
from tests.support.s3_proxy import Reply, Request, S3Proxy, s3_error, s3_proxy

pytestmark = pytest.mark.slow


def test_a_request_signed_for_the_wrong_region_is_repeated_once_for_the_right_one_g89(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    def only_ireland(request: Request) -> Reply | None:
        if request.region == "eu-west-1":
            return None
        said = "the region 'us-east-1' is wrong; expecting 'eu-west-1'"
        return s3_error(400, "AuthorizationHeaderMalformed", said, Region="eu-west-1")

    proxy.rules.append(only_ireland)

    storage.put("k", b"x")

    assert storage.get("k", limit_bytes=10) == b"x"


def test_a_region_that_stays_wrong_is_named_and_not_tried_for_ever_g89(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    refused = s3_error(
        400, "AuthorizationHeaderMalformed", "expecting eu-west-1", Region="eu-west-1"
    )
    proxy.rules.append(lambda _: refused)

    with pytest.raises(CredentialsError) as caught:
        storage.put("k", b"x")
    assert caught.value.hint == "set repository.options.region to eu-west-1"
    assert len(proxy.requests) <= 4


def test_a_redirect_that_tells_only_the_region_names_it_g89(
    proxy: S3Proxy, storage: S3Storage
) -> None:
    moved = Reply(status=301, headers={"x-amz-bucket-region": "eu-west-1"})
    proxy.rules.append(lambda _: moved)

    with pytest.raises(CredentialsError) as caught:
        storage.put("k", b"x")
    assert caught.value.hint == "set repository.options.region to eu-west-1"
    assert len(proxy.requests) <= 4


class RefuseParts:
    """Say that one access key has expired, from some part on."""

    def __init__(self, access_key: str, first_part: int) -> None:
        self._access_key = access_key
        self._first_part = first_part

    def __call__(self, request: Request) -> Reply | None:
        if request.part >= self._first_part and request.access_key == self._access_key:
            return s3_error(400, "ExpiredToken", "The provided token has expired.")
        return None


def test_credentials_that_can_be_renewed_are_renewed_during_an_upload_g90(
    proxy: S3Proxy, open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    give_keys = tmp_path / "give_keys.py"
    give_keys.write_text(
        "import json, pathlib, sys\n"
        "count = pathlib.Path(sys.argv[1])\n"
        "number = int(count.read_text()) + 1 if count.exists() else 1\n"
        "count.write_text(str(number))\n"
        "print(json.dumps({'Version': 1, 'AccessKeyId': f'KEY{number}',\n"
        "    'SecretAccessKey': 's', 'SessionToken': 't',\n"
        "    'Expiration': '2099-01-01T00:00:00Z'}))\n"
    )
    config = tmp_path / "config"
    process = f"{sys.executable} {give_keys} {tmp_path / 'count'}"
    config.write_text(f"[profile roles]\ncredential_process = {process}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    storage = open_s3(profile="roles", parts_in_flight=2)
    proxy.rules.append(RefuseParts("KEY1", 3))
    content = patterned(22 * MIB)

    assert storage.put_file("f", BytesSource(content), sha256=sha256_of(content)) is True

    assert b"".join(storage.read("f", start=0, stop=len(content))) == content
    assert {request.access_key for request in proxy.seen("PUT", query="uploadId")} == {
        "KEY1",
        "KEY2",
    }


def test_credentials_that_stay_expired_end_the_upload_g90(
    proxy: S3Proxy, open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    storage = open_s3()
    proxy.rules.append(RefuseParts("KEY1", 3))
    content = patterned(16 * MIB)

    with pytest.raises(CredentialsError, match="token has expired") as caught:
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert caught.value.hint is not None
    assert "renew the credentials" in caught.value.hint
    assert list(storage.unfinished_uploads()) == []
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY2")
    assert open_s3().put_file("f", BytesSource(content), sha256=sha256_of(content)) is True


@pytest.mark.parametrize(
    ("no_proxy", "through"), [("127.0.0.1", False), ("elsewhere.example", True)]
)
def test_proxy_variables_are_honoured_g91(
    moto_url: str,
    bucket: str,
    proxy: S3Proxy,
    monkeypatch: pytest.MonkeyPatch,
    no_proxy: str,
    through: bool,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    monkeypatch.setenv("no_proxy", no_proxy)
    storage = S3Storage(f"s3://{bucket}/proxied", S3Options(endpoint_url=moto_url))

    storage.put("k", b"x")

    assert bool(proxy.requests) is through
    storage.close()


def test_proxies_can_be_set_and_switched_off_g91(
    moto_url: str, bucket: str, proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    chosen = S3Options(endpoint_url=moto_url, proxies={"http": proxy.url})
    storage = S3Storage(f"s3://{bucket}/proxied", chosen)
    storage.put("k", b"x")
    storage.close()
    assert len(proxy.requests) == 1

    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    storage = S3Storage(f"s3://{bucket}/proxied", S3Options(endpoint_url=moto_url, proxies={}))
    storage.put("k", b"x")
    storage.close()
    assert len(proxy.requests) == 1


def test_a_private_authority_needs_its_bundle_g92(
    moto_url: str,
    bucket: str,
    s3_credentials: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    bundle, certificate = make_certificates(tmp_path)
    url = f"s3://{bucket}/tls"
    with s3_proxy(moto_url, certificate) as proxy:
        given = S3Options(endpoint_url=proxy.url, ca_bundle=str(bundle), max_attempts=2)
        unknown = S3Options(endpoint_url=proxy.url, max_attempts=2)

        with_bundle = S3Storage(url, given)
        with_bundle.put("k", b"x")
        without = S3Storage(url, unknown)
        with pytest.raises(CredentialsError, match="certificate") as caught:
            without.get("k", limit_bytes=10)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
        by_environment = S3Storage(url, unknown)
        assert by_environment.get("k", limit_bytes=10) == b"x"

        for storage in (with_bundle, without, by_environment):
            storage.close()
    assert caught.value.hint is not None
    assert "repository.options.ca_bundle" in caught.value.hint


def test_a_bucket_with_dots_works_over_tls_with_the_check_on_g88(
    moto_url: str, s3_credentials: None, tmp_path: Path
) -> None:
    make_bucket(moto_url, "my.bucket.prod")
    bundle, certificate = make_certificates(tmp_path)
    with s3_proxy(moto_url, certificate) as proxy:
        storage = S3Storage(
            "s3://my.bucket.prod", S3Options(endpoint_url=proxy.url, ca_bundle=str(bundle))
        )
        storage.put("k", b"x")
        storage.close()

    assert proxy.requests[0].path == "/my.bucket.prod/k"


@pytest.mark.parametrize(
    ("bucket", "url"),
    [
        ("snapshots", "https://snapshots.s3.amazonaws.com/k"),
        ("my.bucket.prod", "https://s3.eu-west-1.amazonaws.com/my.bucket.prod/k"),
    ],
)
def test_at_aws_only_a_bucket_with_dots_is_addressed_by_path_g88(
    s3_credentials: None, bucket: str, url: str
) -> None:
    connection = S3Connection(S3Options(region="eu-west-1"))

    signed = connection.run(
        lambda client: client.generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": "k"}
        )
    )

    assert signed.partition("?")[0] == url
    connection.close()


def test_an_endpoint_from_the_environment_is_addressed_by_path_too(
    proxy: S3Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.url.replace("127.0.0.1", "localhost"))
    storage = S3Storage(f"s3://{BUCKET}/by-environment")

    storage.put("k", b"x")

    assert proxy.requests[0].path == f"/{BUCKET}/by-environment/k"
    storage.close()


def test_missing_credentials_are_said_to_be_missing(
    proxy: S3Proxy, open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(CredentialsError, match="credentials") as caught:
        open_s3().put("k", b"x")
    assert caught.value.hint is not None
    assert proxy.requests == []


def test_an_unknown_profile_is_a_matter_of_configuration(open_s3: OpenS3) -> None:
    with pytest.raises(ConfigError, match="nobody"):
        open_s3(profile="nobody")


def test_a_wrong_key_is_refused_and_no_secret_is_told_g104(
    seaweedfs_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_bucket(seaweedfs_url, "refusing")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    storage = S3Storage("s3://refusing", S3Options(endpoint_url=seaweedfs_url))

    with pytest.raises(CredentialsError, match="SignatureDoesNotMatch") as caught:
        storage.put("k", b"x")
    with pytest.raises(CredentialsError, match="HTTP 403"):
        storage.stat("k")

    told = json.dumps([caught.value.message, caught.value.hint, caught.value.facts])
    assert "wrong-secret" not in told
    storage.close()


def test_a_bucket_that_does_not_exist_is_not_an_empty_one(
    moto_url: str, s3_credentials: None
) -> None:
    storage = S3Storage("s3://no-such-bucket", S3Options(endpoint_url=moto_url))

    for attempt in (
        lambda: storage.stat("k"),
        lambda: storage.get("k", limit_bytes=10),
        lambda: storage.put("k", b"x"),
        lambda: list(storage.list("")),
    ):
        with pytest.raises(CredentialsError, match="NoSuchBucket"):
            attempt()
    storage.close()


def test_an_endpoint_that_nobody_serves_is_unreachable(bucket: str, s3_credentials: None) -> None:
    storage = S3Storage(
        f"s3://{bucket}", S3Options(endpoint_url="http://127.0.0.1:9", max_attempts=2)
    )

    with pytest.raises(StorageError, match=r"127\.0\.0\.1:9") as caught:
        storage.get("k", limit_bytes=10)
    assert caught.value.hint is not None
    storage.close()

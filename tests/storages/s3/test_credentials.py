"""Credentials that cannot be had, cannot be sent, or run out, and what is told of them."""

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.errors import ConfigError, CredentialsError, SnapstoreError, StorageError
from snapstore.model.store import BytesSource
from snapstore.storages.s3 import S3Options, S3Storage
from snapstore.storages.s3.connection import S3Connection
from snapstore.testing.storage_contract import patterned, sha256_of
from tests.storages.s3.conftest import MIB, OpenS3
from tests.support.s3_proxy import Reply, Request, S3Proxy, s3_error

TOKEN = "FwoGZXIvYXdzEJr-session-token"
SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCY"
NOBODY = "http://127.0.0.1:9"
"""Nothing listens there: what is told before a connection is refused was told without one."""


def told_of(open_storage: Callable[[], S3Storage]) -> SnapstoreError:
    """Open it and ask for an object; return what is raised."""
    with pytest.raises(SnapstoreError) as caught:
        open_storage().stat("k")
    return caught.value


def everything(error: SnapstoreError) -> str:
    """All that any output shows of an error, its traceback included."""
    return "".join(
        [json.dumps([error.message, error.hint, error.facts]), *traceback.format_exception(error)]
    )


def nowhere(**options: object) -> S3Storage:
    chosen = {"endpoint_url": NOBODY, "max_attempts": 1, **options}
    return S3Storage("s3://bucket", S3Options(**chosen))  # type: ignore[arg-type]


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Write the default profile of the AWS tools."""

    def write(text: str) -> None:
        path = tmp_path / "config"
        path.write_text(f"[default]\n{text}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(path))

    return write


def program(tmp_path: Path, printed: str) -> str:
    """Return the line of a profile that names a program which prints that."""
    path = tmp_path / "credentials.py"
    path.write_text(f"print({printed!r})\n")
    return f"credential_process = {sys.executable} {path}"


@pytest.mark.parametrize("missing", ["/no/such/token", "/"])
def test_a_web_identity_token_that_cannot_be_read_is_a_matter_of_credentials_h32(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/backup")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", missing)

    error = told_of(nowhere)

    assert isinstance(error, CredentialsError)
    assert "cannot get credentials" in error.message
    assert missing in error.message
    assert error.hint is not None


@pytest.mark.parametrize(
    "printed",
    [
        "hello",
        "[]",
        "{}",
        '{"Version": 2}',
        '{"Version": 1}',
        '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "b", "Expiration": "never"}',
        '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "b", "Expiration": 5}',
    ],
)
def test_whatever_a_program_prints_in_place_of_credentials_is_no_bug_h32(
    profile: Callable[[str], None], tmp_path: Path, printed: str
) -> None:
    profile(program(tmp_path, printed))

    assert isinstance(told_of(nowhere), CredentialsError)


@pytest.mark.parametrize(
    "line",
    [
        "credential_process = /no/such/program",
        "credential_process = sh -c 'exit 3",
        "credential_process = false",
        "role_arn = arn:aws:iam::1:role/x\nsource_profile = default",
        "role_arn = arn:aws:iam::1:role/x\nsource_profile = nobody",
        "role_arn = arn:aws:iam::1:role/x\ncredential_source = Environment",
        "sso_start_url = https://sso.example\nsso_region = us-east-1\nsso_account_id = 1\n"
        "sso_role_name = x",
        "web_identity_token_file = /no/such/token\nrole_arn = arn:aws:iam::1:role/x",
        "retry_mode = odd\ncredential_process = false",
    ],
)
def test_a_profile_that_yields_no_credentials_is_no_bug_h32(
    profile: Callable[[str], None], line: str
) -> None:
    profile(line)

    assert isinstance(told_of(nowhere), CredentialsError | ConfigError)


@pytest.mark.parametrize("content", ["hello", "[default\n", "[default]\nx\n"])
def test_a_file_of_the_aws_tools_that_is_none_is_named_h32(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(path))

    error = told_of(nowhere)

    assert isinstance(error, ConfigError)
    assert str(path) in error.message


def test_a_service_for_credentials_that_does_not_answer_is_worth_another_try_h39(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{NOBODY}/credentials")

    error = told_of(nowhere)

    assert isinstance(error, StorageError)
    assert NOBODY in error.message


def test_a_service_for_roles_that_does_not_answer_is_worth_another_try_h39(
    profile: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, s3_credentials: None
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", NOBODY)
    profile("role_arn = arn:aws:iam::1:role/x\ncredential_source = Environment")
    monkeypatch.setenv("AWS_PROFILE", "default")

    error = told_of(lambda: nowhere(profile="default"))

    assert isinstance(error, StorageError)
    assert NOBODY in error.message


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://[::1", "no URL"),
        ("http://host:port", "no URL"),
        ("http://host:99999", "no URL"),
        ("http://", "names no host"),
        ("http://a b", "a blank"),
        ("http://host\n", "a control character|no URL"),
        ("ftp://host", "must begin with"),
        ("http://user:hunter2-word@host", "no user and no password"),
    ],
)
def test_an_endpoint_that_is_none_is_a_matter_of_configuration_h32(
    monkeypatch: pytest.MonkeyPatch, s3_credentials: None, url: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=f"repository.options.endpoint_url.*({why})") as by_option:
        nowhere(endpoint_url=url)
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(variable, url)
        with pytest.raises(ConfigError, match=f"{variable} .*({why})") as by_environment:
            nowhere(endpoint_url=None)
        monkeypatch.delenv(variable)
    assert "hunter2" not in everything(by_option.value) + everything(by_environment.value)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("{}\n", "ends in a line feed"),
        ("{}\r\n", "ends in a line feed"),
        ("{}\r", "ends in a carriage return"),
        ("{}\t", "ends in a tab"),
        (" {}", "begins with a blank"),
        ("\n{}", "begins with a line feed"),
        ("{}\nx-amz-acl: public-read", "holds a control character"),
        ("{}\x07{}", "holds a control character"),
        ("{}\udcff", "one that is no character"),
    ],
)
@pytest.mark.parametrize(
    ("variable", "secret"),
    [
        ("AWS_SESSION_TOKEN", TOKEN),
        ("AWS_SECURITY_TOKEN", TOKEN),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLEACCESS"),
    ],
)
def test_blanks_and_line_ends_are_told_by_the_variables_name_and_not_shown_h28(
    monkeypatch: pytest.MonkeyPatch,
    s3_credentials: None,
    variable: str,
    secret: str,
    value: str,
    wrong: str,
) -> None:
    monkeypatch.setenv(variable, value.replace("{}", secret))

    error = told_of(nowhere)

    assert isinstance(error, CredentialsError)
    assert error.message.startswith(f"{variable} ")
    assert wrong in error.message
    assert secret not in everything(error)


def test_a_token_from_a_program_is_looked_at_too_h28(
    profile: Callable[[str], None], tmp_path: Path
) -> None:
    keys = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": SECRET, "SessionToken": TOKEN}
    profile(program(tmp_path, json.dumps({**keys, "SessionToken": f"{TOKEN}\n"})))

    error = told_of(nowhere)

    assert error.message == "the session token from custom-process ends in a line feed"
    assert TOKEN not in everything(error)


@pytest.mark.slow
def test_credentials_that_are_bad_from_some_part_on_end_the_upload_and_leave_nothing_h32(
    proxy: S3Proxy,
    open_s3: OpenS3,
    profile: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    script = tmp_path / "give.py"
    count = tmp_path / "count"
    keys = {"Version": 1, "AccessKeyId": "A", "SecretAccessKey": SECRET, "SessionToken": TOKEN}
    bad = {**keys, "SessionToken": f"{TOKEN}\n"}
    script.write_text(
        "import pathlib, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        f"print({json.dumps(bad)!r} if count.exists() else {json.dumps(keys)!r})\n"
        "count.touch()\n"
    )
    profile(f"credential_process = {sys.executable} {script}")
    storage = open_s3(parts_in_flight=1)

    def expired(request: Request) -> Reply | None:
        return s3_error(400, "ExpiredToken") if request.part >= 2 else None

    proxy.rules.append(expired)
    content = patterned(22 * MIB)

    with pytest.raises(CredentialsError, match="session token from custom-process") as caught:
        storage.put_file("f", BytesSource(content), sha256=sha256_of(content))

    assert TOKEN not in everything(caught.value)
    assert list(storage.unfinished_uploads()) == []


def test_an_error_that_quotes_a_secret_is_told_without_it_h28(
    proxy: S3Proxy, open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    storage = open_s3(max_attempts=1)
    said = f"the token {TOKEN} is not of {SECRET}"
    proxy.rules.append(lambda _: s3_error(403, "SignatureDoesNotMatch", said))

    error = told_of(lambda: storage)
    with pytest.raises(CredentialsError, match="SignatureDoesNotMatch") as caught:
        storage.get("k", limit_bytes=10)

    assert "the token (hidden) is not of (hidden)" in caught.value.message
    for each in (error, caught.value):
        assert TOKEN not in everything(each)
        assert SECRET not in everything(each)


def test_an_error_of_the_http_library_that_quotes_a_header_is_told_without_it_h28(
    monkeypatch: pytest.MonkeyPatch, s3_credentials: None
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    storage = nowhere()
    connection = storage._connection

    def quoting(_: object) -> None:
        try:
            raise ValueError(f"Invalid header value b'{TOKEN}\\n'")
        except ValueError as error:
            raise OSError(f"could not send {TOKEN}") from error

    with pytest.raises(OSError, match="hidden") as caught:
        connection.run(quoting)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


def region_of(options: S3Options) -> str:
    connection = S3Connection(options)
    try:
        return connection.run(lambda client: client.meta.region_name)
    finally:
        connection.close()


def test_the_region_is_read_from_both_variables_the_newer_one_first_h37(
    monkeypatch: pytest.MonkeyPatch, s3_credentials: None
) -> None:
    assert region_of(S3Options()) == "us-east-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert region_of(S3Options()) == "eu-west-1"
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert region_of(S3Options()) == "eu-north-1"
    assert region_of(S3Options(region="eu-south-1")) == "eu-south-1"
    monkeypatch.setenv("AWS_REGION", "")
    assert region_of(S3Options()) == "eu-west-1"


@pytest.mark.parametrize(
    "name",
    [
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_CA_BUNDLE",
        "AWS_SESSION_TOKEN",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "HTTP_PROXY",
    ],
)
def test_a_variable_that_is_set_to_nothing_counts_as_not_set_h37(
    open_s3: OpenS3, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "")

    assert open_s3().stat("k") is None

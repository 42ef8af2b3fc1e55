"""A botocore client, made anew when its credentials were replaced."""

import os
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.loaders import JSONFileLoader, Loader
from botocore.session import Session

from snapstore.storages.s3.answers import check_answer, note_request
from snapstore.storages.s3.content_md5 import add_content_md5
from snapstore.storages.s3.errors import code_of, translated
from snapstore.storages.s3.options import S3Options
from snapstore.storages.s3.times import parse_time

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired")


_SERVICES = ("s3", "signin", "sso", "sso-oidc", "sts")
_ENDPOINTS = ("s3", "signin", "portal.sso", "oidc", "sts")
"""The same, as the list of endpoints calls them."""


class _FastFiles(JSONFileLoader):
    """Decodes botocore's models four times as fast as botocore does, which shows at every start.

    Where the endpoints of the other services are is forgotten: they take 3 MB.
    """

    def _load_file(self, full_path: str, open_method: Callable[..., IO[bytes]]) -> Any:
        try:
            with open_method(full_path, "rb") as file:
                model = msgspec.json.decode(file.read())
        except FileNotFoundError:
            return None
        for partition in model.get("partitions", ()):
            if "services" in partition:
                services = partition["services"]
                partition["services"] = {
                    name: services[name] for name in _ENDPOINTS if name in services
                }
        return model


class _ServiceLoader(Loader):
    """Reads the models of the few services in use.

    botocore looks through the folders of all its 400 services otherwise, twice, which takes a third
    of the time of making a client.
    """

    FILE_LOADER_CLASS = _FastFiles

    def list_available_services(self, type_name: str) -> list[str]:
        del type_name  # each of them has a model, rules and pages
        return [*_SERVICES]


class S3Connection:
    """Runs requests, with credentials from where AWS tools look: environment, profile, SSO."""

    def __init__(self, options: S3Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._client, self._used = self._connected()

    def run(self, request: Callable[["S3Client"], T]) -> T:
        """Return what ``request`` returns.

        When the server says that the credentials have run out and others are to be had by now, it
        is run once more with those. Raises botocore's errors.
        """
        client = self._client
        try:
            return request(client)
        except ClientError as error:
            if code_of(error) not in _EXPIRED or not self._renewed(client):
                raise
        return request(self._client)

    def close(self) -> None:
        self._client.close()

    def _renewed(self, expired: "S3Client") -> bool:
        """Whether there is a client now with other credentials than the expired one had."""
        with self._lock:
            if self._client is not expired:
                return True
            client, credentials = self._connected()
            if credentials == self._used:
                client.close()
                return False
            self._client, self._used = client, credentials
            return True

    def _connected(self) -> tuple["S3Client", "ReadOnlyCredentials | None"]:
        with translated("connect to S3"):
            session = Session(profile=self._options.profile)
            session.register_component("data_loader", _ServiceLoader())
            session.get_component("response_parser_factory").set_parser_defaults(
                timestamp_parser=parse_time
            )
            options = self._options
            endpoint_url = options.endpoint_url or _endpoint_of_environment(session)
            if options.addressing_style == "auto" and _is_own(endpoint_url):
                options = msgspec.structs.replace(options, addressing_style="path")
            client = _client(session, options)
            if options.addressing_style == "auto" and _is_own(client.meta.endpoint_url):
                # The endpoint comes from the profile. To make a client twice takes its time.
                options = msgspec.structs.replace(options, addressing_style="path")
                client = _client(session, options)
            credentials = session.get_credentials()
            frozen = credentials.get_frozen_credentials() if credentials else None
        return client, frozen


def _is_own(endpoint_url: str | None) -> bool:
    return endpoint_url is not None and ".amazonaws." not in endpoint_url


def _endpoint_of_environment(session: Session) -> str | None:
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _client(session: Session, options: S3Options) -> "S3Client":
    # Without a region botocore cannot sign; servers of one's own mostly ignore it.
    region = options.region or session.get_config_variable("region") or "us-east-1"
    client = session.create_client(
        "s3",
        region_name=region,
        endpoint_url=options.endpoint_url,
        verify=options.ca_bundle,
        config=client_config(options),
    )
    client.meta.events.register("before-call.s3.DeleteObjects", add_content_md5)
    client.meta.events.register("before-parameter-build.s3", note_request)
    client.meta.events.register_first("needs-retry.s3", check_answer)
    return cast("S3Client", client)


def client_config(options: S3Options) -> Config:
    """Return botocore's settings: a body is not hashed for the signature, which TLS makes needless.

    The SHA-256 of every body travels in a header of its own.
    """
    style = options.addressing_style
    return Config(
        s3={"payload_signing_enabled": False}
        if style == "auto"
        else {"payload_signing_enabled": False, "addressing_style": style},
        request_checksum_calculation=options.checksum_mode,
        response_checksum_validation=options.checksum_mode,
        retries={"mode": "standard", "total_max_attempts": options.max_attempts},
        max_pool_connections=options.connections,
        tcp_keepalive=True,
        connect_timeout=options.connect_timeout.total_seconds(),
        read_timeout=options.read_timeout.total_seconds(),
        proxies=options.proxies,
    )

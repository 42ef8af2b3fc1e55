"""A botocore client, made anew when its credentials were replaced."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from snapstore.storages.s3.answers import check_answer, note_request
from snapstore.storages.s3.clocks import ClockNote
from snapstore.storages.s3.content_md5 import only_content_md5
from snapstore.storages.s3.credentials import Credentials
from snapstore.storages.s3.errors import code_of, configured
from snapstore.storages.s3.notes import Notes
from snapstore.storages.s3.options import S3Options, check_endpoint
from snapstore.storages.s3.patience import TELL_AFTER_S, Patience
from snapstore.storages.s3.session import new_session, request_settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired")


class S3Connection:
    """Runs requests, with credentials from where AWS tools look: environment, profile, SSO."""

    def __init__(self, options: S3Options, *, tell_after_s: float = TELL_AFTER_S) -> None:
        self.notes = Notes()
        self.patience = Patience(options.give_up_after, self.notes, tell_after_s=tell_after_s)
        self.clock = ClockNote(self.notes)
        self._options = options
        self._lock = threading.Lock()
        self._client, self._credentials = self._connected()

    def run(self, request: Callable[["S3Client"], T]) -> T:
        """Return what ``request`` returns.

        When the server says that the credentials have run out and others are to be had by now, it
        is run once more with those. Raises botocore's errors.
        """
        client = self._client
        with self.patience.waiting(), self._credentials.kept_from_errors():
            try:
                return request(client)
            except ClientError as error:
                if code_of(error) not in _EXPIRED or not self._renewed(client):
                    raise
            return request(self._client)

    def close(self) -> None:
        self._client.close()
        self.patience.close()

    def _renewed(self, expired: "S3Client") -> bool:
        """Whether there is a client now with other credentials than the expired one had."""
        with self._lock:
            if self._client is not expired:
                return True
            client, credentials = self._connected()
            if credentials.current() == self._credentials.current():
                client.close()
                return False
            self._client, self._credentials = client, credentials
            return True

    def _connected(self) -> tuple["S3Client", Credentials]:
        options = self._options
        with configured("connect to S3"):
            session = new_session(options, self.patience)
        with self.patience.waiting():
            credentials = Credentials(session)
        with configured("connect to S3"):
            endpoint_url = options.endpoint_url or _endpoint_of_environment(session)
            if options.addressing_style == "auto" and _is_own(endpoint_url):
                options = msgspec.structs.replace(options, addressing_style="path")
            client = _client(session, options)
            if options.addressing_style == "auto" and _is_own(client.meta.endpoint_url):
                # The endpoint comes from the profile. To make a client twice takes its time.
                options = msgspec.structs.replace(options, addressing_style="path")
                client = _client(session, options)
        events = client.meta.events
        events.register("before-sign.s3", credentials.before_sign)
        events.register("needs-retry.s3", self.clock.after_attempt)
        return client, credentials


def _is_own(endpoint_url: str | None) -> bool:
    return endpoint_url is not None and ".amazonaws." not in endpoint_url


def _endpoint_of_environment(session: Session) -> str | None:
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if url := os.environ.get(name):
            check_endpoint(url, name)
            return url
    return None


def _client(session: Session, options: S3Options) -> "S3Client":
    client = session.create_client(
        "s3",
        endpoint_url=options.endpoint_url,
        verify=options.ca_bundle,
        config=client_config(options),
    )
    if options.checksum_mode == "when_required":
        client.meta.events.register("before-call.s3.DeleteObjects", only_content_md5)
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
        max_pool_connections=options.connections,
        tcp_keepalive=True,
        proxies=options.proxies,
        **request_settings(options),
    )

"""Translate what S3 and botocore say into one sentence and what to do about it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    ConfigParseError,
    ConnectTimeoutError,
    EndpointConnectionError,
    EndpointProviderError,
    InfiniteLoopConfigError,
    InvalidConfigError,
    InvalidRegionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from snapstore.errors import (
    ConfigError,
    CredentialsError,
    NoSpaceError,
    SnapstoreError,
    StorageError,
    StorageUnfitError,
)
from snapstore.storages.s3.answers import FOREIGN, INCOMPLETE, REDIRECTED
from snapstore.storages.s3.clocks import REFUSED_BEYOND, clock_difference, spell_difference

_POLICY = "check that the policy of these credentials allows it, and the policy of the bucket"
_KEYS = "check the access key and the secret key"
_RENEW = "renew the credentials and run again: what is stored already is not sent again"
_REGION = "set repository.options.region to the region of the bucket"
_BUCKET = "check the name of the bucket and repository.options.endpoint_url"
_CHECKSUM = (
    "this server may not take the AWS library's own checksums: "
    "set repository.options.checksum_mode to when_required"
)
_OLD_SERVER = f"{_CHECKSUM}; if it is set, the server lacks conditional writes or checksums"

_ELSEWHERE = (
    "check repository.options.endpoint_url, and what answers there for the storage: a proxy, a "
    "gateway, a page to log in"
)

_FINAL: Final[Mapping[str, str]] = {
    "301": _REGION,
    "400": f"{_RENEW}, or {_REGION}",
    "401": _KEYS,
    "403": _POLICY,
    "AccessDenied": _POLICY,
    "AccountProblem": "ask the provider about the account",
    "AllAccessDisabled": _POLICY,
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": _KEYS,
    "InvalidBucketName": _BUCKET,
    "InvalidClientTokenId": _KEYS,
    "InvalidToken": _RENEW,
    "KMS.DisabledException": "enable the key in repository.options.sse_kms_key_id",
    "KMS.NotFoundException": "check repository.options.sse_kms_key_id",
    "NoSuchBucket": _BUCKET,
    "NotSignedUp": "ask the provider about the account",
    "PermanentRedirect": _REGION,
    REDIRECTED: "set repository.options.endpoint_url to the address of the storage itself",
    "RequestExpired": "set the clock of this machine",
    "RequestTimeTooSkewed": "set the clock of this machine",
    "SignatureDoesNotMatch": _KEYS,
    "TokenRefreshRequired": _RENEW,
    "UnauthorizedAccess": _POLICY,
}
"""Codes that no repetition cures, each with what to do."""

_HINTS: Final[Mapping[str, str]] = {
    "BadDigest": "the bytes were changed on the way: check the network, then run again",
    FOREIGN: _ELSEWHERE,
    INCOMPLETE: _ELSEWHERE,
    "EntityTooLarge": "lower repository.options.multipart_threshold",
    "EntityTooSmall": "raise repository.options.part_size",
    "InvalidArgument": _CHECKSUM,
    "InvalidRequest": _CHECKSUM,
    "MalformedTrailerError": _CHECKSUM,
    "MissingContentLength": _CHECKSUM,
    "SlowDown": "lower transfer.parallel or transfer.limit_rate, then run again",
    "XAmzContentSHA256Mismatch": _CHECKSUM,
}

_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")

_FULL = ("InsufficientCapacity", "QuotaExceeded", "XMinioStorageFull")


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise an error of our tree in place of botocore's; ``action`` is like ``store s3://b/k``."""
    try:
        yield
    except ClientError as error:
        raise explained(error, action) from error
    except (BotoCoreError, ResponseParserError, OSError, ValueError, HTTPError) as error:
        raise unreachable(error, action) from error


@contextmanager
def configured(action: str) -> Iterator[None]:
    """Raise ConfigError for what botocore says of the settings of a client; nothing is sent yet."""
    try:
        yield
    except (BotoCoreError, OSError, ValueError) as error:
        raise ConfigError(
            f"cannot {action}: {_one_line(error)}",
            hint="check repository.options, the AWS_ variables and ~/.aws",
        ) from error


def code_of(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def status_of(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def attempts_of(error: ClientError) -> int:
    """How often the request was sent in all."""
    return error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) + 1


def explained(error: ClientError, action: str, *, hint: str | None = None) -> SnapstoreError:
    """Return the error of our tree for an answer of the server; ``hint`` replaces the usual one."""
    code, status, attempts = code_of(error), status_of(error), attempts_of(error)
    said = " ".join(error.response.get("Error", {}).get("Message", "").split()).rstrip(".")
    tried = f", {attempts} attempts" if attempts > 1 else ""
    message = f"cannot {action}: {said or 'refused'} ({code}, HTTP {status}{tried})"
    facts = {"code": code, "status": status, "attempts": attempts}
    ahead = clock_difference(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}))
    if status == 403 and ahead is not None and abs(ahead) > REFUSED_BEYOND:
        return CredentialsError(
            f"{message}; {spell_difference(ahead)}", hint="set the clock of this machine", **facts
        )
    if code == "NotImplemented" or status == 501:
        return StorageUnfitError(message, hint=hint or _OLD_SERVER, **facts)
    if code in _FINAL:
        region = _told_region(error)
        told = f"set repository.options.region to {region}" if region else _FINAL[code]
        return CredentialsError(message, hint=hint or told, **facts)
    if code in _FULL or status == 507:
        return NoSpaceError(message, hint=hint or "raise the quota, or prune", **facts)
    return StorageError(message, hint=hint or _HINTS.get(code), **facts)


def _told_region(error: ClientError) -> str | None:
    """Return the region that the server itself named, in its text or in a header."""
    told = error.response.get("Error", {}).get("Region")
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    found = told or headers.get("x-amz-bucket-region")
    return str(found) if found else None


def unreachable(
    error: Exception, action: str, *, otherwise: SnapstoreError | None = None
) -> SnapstoreError:
    """Return the error of our tree for what happened on this side of the wire.

    ``otherwise`` is for what has no error of its own.
    """
    message = f"cannot {action}: {_one_line(error)}"
    match error:
        case (
            ProfileNotFound()
            | ConfigNotFound()
            | ConfigParseError()
            | InvalidConfigError()
            | InfiniteLoopConfigError()
            | EndpointProviderError()
            | ParamValidationError()
            | InvalidRegionError()
        ):
            return ConfigError(
                message, hint="check repository.options, the AWS_ variables and ~/.aws"
            )
        case NoCredentialsError() | PartialCredentialsError():
            return CredentialsError(
                message, hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile"
            )
        case SSLError():
            return CredentialsError(
                message,
                hint="for a private certificate authority set repository.options.ca_bundle "
                "or AWS_CA_BUNDLE; snapstore never switches the check off",
            )
        case ProxyConnectionError():
            return StorageError(
                message,
                hint="check HTTPS_PROXY, HTTP_PROXY, NO_PROXY and repository.options.proxies",
            )
        case EndpointConnectionError() | ConnectTimeoutError():
            return StorageError(
                message, hint="check repository.options.endpoint_url and the network"
            )
        case ReadTimeoutError():
            return StorageError(message, hint="the server is slow: run again")
        case _:
            return otherwise or StorageError(message)


def _one_line(error: Exception) -> str:
    """Return what it says, without the user and the password of a URL in it."""
    return _USERINFO.sub("", " ".join(str(error).split())).rstrip(".")

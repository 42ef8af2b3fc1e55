"""What can be set for S3, and what an ``s3://`` URL says."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from snapstore.errors import ConfigError
from snapstore.model.units import Bytes

MIB = 1 << 20
GIB = 1 << 30
SMALLEST_PART = 5 * MIB
LARGEST_PUT = 5 * GIB

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Count = Annotated[int, msgspec.Meta(ge=1)]


class S3Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an S3 repository; what is None is left to the AWS environment and profile.

    ``addressing_style`` auto is ``path`` for an ``endpoint_url`` of one's own, and AWS's own choice
    otherwise (path where a bucket name has dots, since no certificate covers such a host).
    ``max_parts`` is 10,000 at AWS, 1,000 at some other providers. ``checksum_mode`` is about the
    checksums that the AWS library adds by itself; snapstore always sends a SHA-256.
    ``proxies`` maps ``http`` and ``https`` to a URL in place of the environment's proxy variables;
    an empty map means none. ``max_attempts`` counts the first one; no request is tried again when
    nothing has come or gone for ``give_up_after``.
    """

    endpoint_url: str | None = None
    region: str | None = None
    profile: str | None = None
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    sse: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    sse_kms_key_id: str | None = None
    storage_class: str | None = None
    multipart_threshold: Bytes = 512 * MIB
    part_size: Bytes = 32 * MIB
    max_parts: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10_000
    parts_in_flight: Count = 4
    checksum_mode: Literal["when_required", "when_supported"] = "when_required"
    ca_bundle: str | None = None
    proxies: dict[str, str] | None = None
    max_attempts: Count = 8
    connections: Count = 16
    connect_timeout: timedelta = timedelta(seconds=10)
    read_timeout: timedelta = timedelta(seconds=60)
    give_up_after: timedelta = timedelta(minutes=2)

    def check(self) -> None:
        """Raise ConfigError for values that cannot work together."""
        if not 0 < self.multipart_threshold <= LARGEST_PUT:
            raise _wrong("multipart_threshold", "must be from 1 byte to 5 GiB")
        if not SMALLEST_PART <= self.part_size <= LARGEST_PUT:
            raise _wrong("part_size", "must be from 5 MiB to 5 GiB")
        if self.sse_kms_key_id is not None and self.sse not in ("aws:kms", "aws:kms:dsse"):
            raise _wrong("sse_kms_key_id", "needs sse: aws:kms")
        for name in ("connect_timeout", "read_timeout", "give_up_after"):
            if getattr(self, name) <= timedelta(0):
                raise _wrong(name, "must be longer than nothing")
        if self.ca_bundle is not None and not Path(self.ca_bundle).is_file():
            raise _wrong("ca_bundle", f"there is no file {self.ca_bundle}")
        if self.endpoint_url is not None:
            check_endpoint(self.endpoint_url, "repository.options.endpoint_url")


class S3Location(msgspec.Struct, frozen=True):
    """A bucket, and the prefix of every key in it: empty, or ending in one ``/``."""

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse_url(url: str) -> S3Location:
    """Return the place an ``s3://bucket/prefix`` URL names; a missing or final ``/`` is the same.

    The prefix is taken as written; ``%`` is itself. Raises ConfigError for anything that could be
    read in two ways: empty parts, ``.`` and ``..``, control characters.
    """
    scheme, separator, rest = url.partition("://")
    bucket, _, path = rest.partition("/")
    if not separator or scheme.lower() != "s3" or not _BUCKET.fullmatch(bucket):
        raise ConfigError(f"{url!r} is not of the form s3://bucket/prefix", url=url)
    parts = path.removesuffix("/").split("/") if path.removesuffix("/") else []
    if any(part in ("", ".", "..") for part in parts) or path.startswith("/"):
        raise ConfigError(
            f"{url!r} has an empty part, . or .. in its prefix", hint="leave it out", url=url
        )
    if _CONTROL.search(path):
        raise ConfigError(f"{url!r} has a control character in its prefix", url=url)
    return S3Location(bucket, "".join(f"{part}/" for part in parts))


def check_endpoint(url: str, named_by: str) -> None:
    """Raise ConfigError for a URL that leads to no server; ``named_by`` is the key or variable."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{named_by} must begin with http:// or https://", key=named_by)
    try:
        parts = urlsplit(url)
        wrong = None if parts.hostname else "names no host"
        _ = parts.port  # raises ValueError where it is none
    except ValueError as error:
        wrong = f"is no URL: {error}"
    if wrong is None and "@" in parts.netloc:
        wrong = "must hold no user and no password: credentials come from the environment"
    if wrong is None and (_CONTROL.search(url) or " " in url):
        wrong = "holds a blank or a control character"
    if wrong is not None:
        raise ConfigError(f"{named_by} {wrong}", key=named_by)


def _wrong(option: str, what: str) -> ConfigError:
    key = f"repository.options.{option}"
    return ConfigError(f"{key} {what}", key=key)

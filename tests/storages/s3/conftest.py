"""A bucket on moto behind a proxy that can spoil exchanges."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from snapstore.storages.s3 import S3Options, S3Storage
from tests.support.moto import make_bucket
from tests.support.s3_proxy import S3Proxy, s3_proxy

MIB = 1 << 20
BUCKET = "behind-proxy"

_NUMBERS = itertools.count()
_PARTED = {"multipart_threshold": 5 * MIB, "part_size": 5 * MIB}

OpenS3 = Callable[..., S3Storage]


@pytest.fixture(scope="session")
def bucket(moto_url: str) -> str:
    make_bucket(moto_url, BUCKET)
    return BUCKET


@pytest.fixture
def proxy(moto_url: str, bucket: str, s3_credentials: None) -> Iterator[S3Proxy]:
    with s3_proxy(moto_url) as running:
        yield running


@pytest.fixture
def open_s3(proxy: S3Proxy) -> Iterator[OpenS3]:
    """Open a new place of the bucket through the proxy, with some options changed."""
    opened = []
    url = f"s3://{BUCKET}/place/{next(_NUMBERS)}"

    def open_one(**options: object) -> S3Storage:
        chosen = {"endpoint_url": proxy.url, "max_attempts": 3, **_PARTED, **options}
        opened.append(S3Storage(url, S3Options(**chosen)))  # type: ignore[arg-type]
        return opened[-1]

    yield open_one
    for storage in opened:
        storage.close()


@pytest.fixture
def storage(open_s3: OpenS3) -> S3Storage:
    return open_s3()

"""The contract of storages, kept by a local folder, a moto server and a real S3 server."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.storages.local import LocalStorage
from snapstore.storages.s3 import S3Options, S3Storage
from snapstore.testing.faults import FaultyStorage
from snapstore.testing.storage_contract import OpenStorage, StorageContract
from tests.support.moto import make_bucket

_BUCKET = "contract"
_NUMBERS = itertools.count()
_MIB = 1 << 20


@pytest.fixture(scope="module")
def moto_with_bucket(moto_url: str) -> str:
    make_bucket(moto_url, _BUCKET)
    return moto_url


@pytest.fixture(scope="module")
def seaweedfs_with_bucket(seaweedfs_url: str) -> str:
    make_bucket(seaweedfs_url, _BUCKET)
    return seaweedfs_url


def opener(endpoint_url: str) -> Callable[[], S3Storage]:
    """Open an empty place of the bucket; its prefix holds a blank and a plus sign."""
    url = f"s3://{_BUCKET}/team a+b/{next(_NUMBERS)}"
    options = S3Options(endpoint_url=endpoint_url, multipart_threshold=8 * _MIB, part_size=5 * _MIB)
    return lambda: S3Storage(url, options)


class TestLocal(StorageContract):
    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> OpenStorage:
        (tmp_path / "team a+b").mkdir()
        return lambda: LocalStorage((tmp_path / "team a+b").as_uri())


@pytest.mark.slow
class TestWithoutFaults(StorageContract):
    """The fault wrapper changes nothing as long as its plan is empty."""

    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> OpenStorage:
        return lambda: FaultyStorage(LocalStorage(str(tmp_path / "repository")))


@pytest.mark.slow
@pytest.mark.usefixtures("s3_credentials")
class TestS3OnMoto(StorageContract):
    checks_checksums = False

    @pytest.fixture
    def open_storage(self, moto_with_bucket: str) -> OpenStorage:
        return opener(moto_with_bucket)


@pytest.mark.slow
@pytest.mark.usefixtures("s3_credentials")
class TestS3OnSeaweedFS(StorageContract):
    @pytest.fixture
    def open_storage(self, seaweedfs_with_bucket: str) -> OpenStorage:
        return opener(seaweedfs_with_bucket)


@pytest.mark.slow
@pytest.mark.usefixtures("s3_credentials")
class TestS3OnSeaweedFSWhichIsReliedOn(StorageContract):
    @pytest.fixture
    def open_storage(self, seaweedfs_with_bucket: str) -> OpenStorage:
        opened = opener(seaweedfs_with_bucket)

        def relying() -> S3Storage:
            storage = opened()
            storage.rely_on_checks()
            return storage

        return relying

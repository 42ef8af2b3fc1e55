"""Every built-in backend keeps the promises of StoreBackend."""

from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.ports import StoreBackend
from snapstore.testing.backend_contract import BackendContract, StoreMaker
from tests.support.rocksdb import LOGGED, RocksDBMaker


class TestRocksDBWithoutLog(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend()

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work")


class TestRocksDBWithLog(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend()

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work", LOGGED)


class TestRocksDBThatCopies(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend(RocksDBBackend.Options(copy_tables=True))

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work")

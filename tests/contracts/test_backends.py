"""Every built-in backend keeps the promises of StoreBackend."""

from pathlib import Path

import pytest

from snapstore.backends.files import FilesBackend
from snapstore.backends.memory import MemoryBackend
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.ports import StoreBackend
from snapstore.testing.backend_contract import BackendContract, StoreMaker
from tests.support.memory_files import MemoryMaker
from tests.support.rocksdb import LOGGED, RocksDBMaker
from tests.support.segments import SegmentMaker


class TestRocksDBWithoutLog(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend()

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work")


@pytest.mark.slow
class TestRocksDBWithLog(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend()

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work", LOGGED)


@pytest.mark.slow
class TestRocksDBThatCopies(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return RocksDBBackend(RocksDBBackend.Options(copy_tables=True))

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work")


@pytest.mark.slow
class TestMemory(BackendContract):
    @pytest.fixture
    def backend(self) -> StoreBackend:
        return MemoryBackend()

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return MemoryMaker(tmp_path / "work")


@pytest.mark.slow
class TestFiles(BackendContract):
    """Segments are named as immutable; locks as no state."""

    writable = False

    @pytest.fixture
    def backend(self) -> StoreBackend:
        return FilesBackend(
            FilesBackend.Options(immutable=("seg-*.log",), ignore=("LOCK",), max_attempts=2000)
        )

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return SegmentMaker(tmp_path / "work")


@pytest.mark.slow
class TestFilesWithoutSettings(BackendContract):
    """Every file is read twice."""

    writable = False

    @pytest.fixture
    def backend(self) -> StoreBackend:
        return FilesBackend(FilesBackend.Options(max_attempts=2000))

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return SegmentMaker(tmp_path / "work")

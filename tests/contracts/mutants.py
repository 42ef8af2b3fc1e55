"""The backend contract, run against backends that break it; only `test_mutants` runs this."""

from pathlib import Path

import pytest

from snapstore.backends.files import FilesBackend
from snapstore.backends.memory import MemoryBackend
from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.ports import StoreBackend
from snapstore.testing.backend_contract import BackendContract, StoreMaker
from tests.support.memory_files import MemoryMaker
from tests.support.mutants import (
    FollowsLinks,
    LeavesAFileOut,
    Mutant,
    ReadsTheOffsetLast,
    TrustsTheFirstLook,
)
from tests.support.rocksdb import RocksDBMaker
from tests.support.segments import SegmentMaker

MUTATIONS = [Mutant, ReadsTheOffsetLast, LeavesAFileOut, FollowsLinks]


class Mutated(BackendContract):
    captures = 5

    @pytest.fixture(params=MUTATIONS, ids=lambda mutation: mutation.__name__)
    def mutation(self, request: pytest.FixtureRequest) -> type[Mutant]:
        chosen: type[Mutant] = request.param
        return chosen


class TestRocksDB(Mutated):
    @pytest.fixture
    def backend(self, mutation: type[Mutant]) -> StoreBackend:
        return mutation(RocksDBBackend())

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return RocksDBMaker(tmp_path / "work")


class TestMemory(Mutated):
    @pytest.fixture
    def backend(self, mutation: type[Mutant]) -> StoreBackend:
        return mutation(MemoryBackend())

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return MemoryMaker(tmp_path / "work")


class TestFiles(Mutated):
    writable = False

    @pytest.fixture(params=[*MUTATIONS, TrustsTheFirstLook], ids=lambda mutation: mutation.__name__)
    def mutation(self, request: pytest.FixtureRequest) -> type[Mutant]:
        chosen: type[Mutant] = request.param
        return chosen

    @pytest.fixture
    def backend(self, mutation: type[Mutant]) -> StoreBackend:
        options = FilesBackend.Options(
            immutable=("seg-*.log",), ignore=("LOCK",), max_attempts=2000
        )
        return mutation(FilesBackend(options))

    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return SegmentMaker(tmp_path / "work")

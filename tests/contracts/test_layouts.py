"""Every built-in layout keeps the promises of the port, on state that real writers left."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.plain import PlainLayout, PlainOptions
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition
from snapstore.ports import Layout, StoreBackend
from snapstore.testing.layout_contract import LayoutContract, Positions, StateMaker
from tests.support.fixtures import FixtureName, expected, unpack
from tests.support.state_dirs import holding_locks, make_database


class FixtureMaker:
    """The state of a real application; its global store goes where it notes no offset."""

    def __init__(self, name: FixtureName) -> None:
        self._name = name
        self.backend: StoreBackend = RocksDBBackend()

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        application = unpack(self._name, state_dir)
        if self._name == "ks400-eos":
            (application / "global" / ".checkpoint").write_text(
                f"0\n1\n{self._name}-in-global 0 20\n"
            )
        return expected_positions(self._name)

    @contextmanager
    def running(self, state_dir: Path) -> Iterator[None]:
        with holding_locks([state_dir / self._name / ".lock"]):
            yield


class PlainMaker:
    def __init__(self) -> None:
        self.backend: StoreBackend = RocksDBBackend()

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        make_database(state_dir, {"default": {b"k": b"v"}})
        (state_dir / "LOCK").touch()
        noted = {"topic": "orders", "partition": 3, "applied_offset": 41}
        side_file = state_dir / ".snapstore-position.json"
        side_file.write_bytes(msgspec.json.encode({"format": 1, "positions": [noted]}))
        position = ChangelogPosition(ChangelogPartition("orders", 3), 41)
        return {StoreId("shop", "3", state_dir.name): (position,)}

    @contextmanager
    def running(self, state_dir: Path) -> Iterator[None]:
        with holding_locks([state_dir / "LOCK"]):
            yield


def expected_positions(name: FixtureName) -> Mapping[StoreId, Positions]:
    """Read what each store must have applied from the fixture's own description."""
    fixture = expected(name)
    lines = [
        line.split(" ")
        for content in fixture.checkpoint_files.values()
        for line in content.splitlines()[2:]
    ]
    in_files = {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}
    positions: dict[StoreId, Positions] = {}
    for path in fixture.rocksdb:
        task, folder, inner = path.split("/")
        store = inner if folder == "rocksdb" else folder
        topic = f"{name}-in-global" if task == "global" else f"{name}-{store}-changelog"
        partition = 0 if task == "global" else int(task.rpartition("_")[2])
        noted = fixture.rocksdb[path].offsets | in_files
        applied = 19 if task == "global" else noted[f"{topic}-{partition}"]
        changelog = ChangelogPartition(topic, partition)
        positions[StoreId(name, task, store)] = (ChangelogPosition(changelog, applied),)
    return positions


class TestKafkaStreamsFrom43(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return KafkaStreamsLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("ks440-alos")


class TestKafkaStreamsTo42(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return KafkaStreamsLayout()

    @pytest.fixture
    def maker(self) -> StateMaker:
        return FixtureMaker("ks400-eos")


class TestPlain(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return PlainLayout(PlainOptions(task="3"))

    @pytest.fixture
    def maker(self) -> StateMaker:
        return PlainMaker()

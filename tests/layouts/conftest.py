"""One task of Kafka Streams, made by hand of real databases."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView
from tests.support.state_dirs import Families, make_database, offsets_family, write_checkpoint

Positions = dict[str, int]
PLAIN: Families = {"default": {b"k": b"v"}}


class Task:
    """A task directory and the questions that the tests ask about it."""

    def __init__(self, state_dir: Path, name: str = "0_3", application: str = "app") -> None:
        self.state_dir = state_dir
        self.application = application
        self.dir = state_dir / application / name
        self.dir.mkdir(parents=True, exist_ok=True)
        self.backend = RocksDBBackend()

    def store(self, name: str, families: Families = PLAIN) -> None:
        make_database(self.dir / "rocksdb" / name, families)

    def segments(self, name: str, families: Mapping[int, Families]) -> None:
        for start, content in families.items():
            make_database(self.dir / name / f"{name}.{start}", content)

    def keeps(self, name: str, offsets: Mapping[str, int], status: int | None = None) -> None:
        """Make a key-value store that keeps its own offsets, as from 4.3 on."""
        self.store(name, offsets_family(offsets, status))

    def checkpoint(self, *lines: str) -> Path:
        return write_checkpoint(self.dir, *lines)

    def location(self, name: str) -> StoreLocation:
        found = KafkaStreamsLayout().discover(self.state_dir, self.application).locations
        task = str(self.dir.relative_to(self.state_dir / self.application))
        (location,) = (one for one in found if (one.store.task, one.store.store) == (task, name))
        return location

    @contextmanager
    def view(self, name: str) -> Iterator[StoreView]:
        location = self.location(name)
        with self.backend.open_view(location.task_dir, location.root) as view:
            yield view

    def positions(
        self, name: str, *, running: bool = False, options: KafkaStreamsOptions | None = None
    ) -> Positions:
        layout = KafkaStreamsLayout(options)
        location = self.location(name)
        noted = layout.noted_offsets(location)
        with self.view(name) as view:
            found = layout.positions(location, noted, view, running=running)
        return {str(one.changelog): one.applied_offset for one in found}

    def remarks(self, name: str) -> tuple[str, ...]:
        layout = KafkaStreamsLayout()
        location = self.location(name)
        noted = layout.noted_offsets(location)
        with self.view(name) as view:
            positions = layout.positions(location, noted, view, running=False)
            return layout.remarks(location, noted, view, positions)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path / "state")


@pytest.fixture
def global_task(tmp_path: Path) -> Task:
    return Task(tmp_path / "state", "global")

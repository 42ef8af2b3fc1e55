"""A repository beside a real application: fenced snapshots, restores with replay, comparisons."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import Config
from snapstore.config.schema import (
    KafkaConfig,
    RepositoryConfig,
    Sections,
    SnapshotConfig,
    StateConfig,
    StoreConfig,
)
from snapstore.model.report import Event, Noted
from tests.support.streams_app import StreamsApp
from tests.support.streams_raw import data_of, read_stores

Rows = Mapping[tuple[str, str], Mapping[bytes, bytes]]


class ReplayLab:
    """Works in one folder, for one application; Kafka is configured."""

    def __init__(
        self,
        folder: Path,
        app: StreamsApp,
        *,
        guarantee: str = "auto",
        stores: Mapping[str, StoreConfig] | None = None,
        max_lag_records: int = 10_000,
    ) -> None:
        self.folder = folder
        self.app = app
        self.events: list[Event] = []
        state = msgspec.convert(
            {
                "application": app.application,
                "guarantee": guarantee,
                "cache_dir": str(folder / "cache"),
                "dir": str(app.state_dir),
            },
            StateConfig,
        )
        self.config = Config(
            sections=Sections(
                repository=RepositoryConfig(url=(folder / "repository").as_uri()),
                kafka=KafkaConfig(bootstrap=app.bootstrap),
                state=state,
                stores=dict(stores or {}),
                snapshot=SnapshotConfig(max_lag_records=max_lag_records),
            )
        )
        client.create(config=self.config).close()

    def open(self) -> Snapstore:
        return client.open(config=self.config)

    def heard(self, event: Event) -> None:
        self.events.append(event)

    @property
    def notes(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noted)]

    def scratch(self) -> Path:
        folder = self.folder / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def rows(self, state_dir: Path) -> Rows:
        """All rows of all stores below a state directory, by task and store."""
        stores = read_stores(state_dir / self.app.application, self.scratch())
        return {key: data_of(databases) for key, databases in stores.items()}

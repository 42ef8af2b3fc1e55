"""A key-value store made by hand, its changelog on a real broker, and a repository for it."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from snapstore import client
from snapstore.client import Snapstore
from snapstore.config import Config, load_config
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Advanced, Event
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.testing.changelog_contract import Written
from tests.kafka.writer import BrokerLogs
from tests.support.broker import Broker
from tests.support.rocksdb import raw_contents
from tests.support.streams_store import APPLICATION, Pairs, make_key_value
from tests.support.topic import fold, read_partition

TASK = "0_0"
_NUMBERS = itertools.count()


class LoggedStore:
    """The store ``name`` of the task 0_0; ``clock`` shows the present time and so much more."""

    def __init__(
        self, broker: Broker, folder: Path, config: Mapping[str, str] | None = None
    ) -> None:
        self.broker = broker
        self.folder = folder
        self.log = BrokerLogs(broker)
        self.name = f"s{next(_NUMBERS)}x{time.time_ns()}"
        self.changelog = ChangelogPartition(f"{APPLICATION}-{self.name}-changelog", 0)
        self.state_dir = folder / "state"
        self.target = folder / "target"
        self.ahead = timedelta()
        broker.create_topic(
            self.changelog.topic, 1, {"cleanup.policy": "compact", **(config or {})}
        )
        self.settings = {
            "SNAPSTORE_REPOSITORY": str(folder / "repository"),
            "SNAPSTORE_KAFKA_BOOTSTRAP": broker.bootstrap,
            "SNAPSTORE_CACHE_DIR": str(folder / "cache"),
            "SNAPSTORE_APPLICATION": APPLICATION,
            "HOME": str(folder),
        }
        client.create(config=self.config).close()

    @property
    def config(self) -> Config:
        return load_config(env=self.settings)

    def open(self) -> Snapstore:
        return client.open(config=self.config, clock=self.clock)

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def write(self, records: Sequence[Written]) -> None:
        self.log.append(self.changelog, records)

    def abort(self, records: Sequence[Written]) -> None:
        self.log.append_in_transaction(self.changelog, records, commit=False)

    def logged(self, stop: int | None = None) -> dict[bytes, bytes]:
        """What the committed records up to there say, read without snapstore."""
        records = read_partition(self.broker.bootstrap, self.changelog.topic, stop=stop)
        return {
            key: record.value for key, record in fold(records).items() if record.value is not None
        }

    def holds_tombstone(self, offset: int) -> bool:
        records = read_partition(self.broker.bootstrap, self.changelog.topic)
        return any(record.offset == offset for record in records)

    def keep(self, applied_offset: int) -> None:
        """Leave a closed store that has applied the log up to that offset."""
        pairs = Pairs(pairs=self.logged(applied_offset + 1), applied_offset=applied_offset)
        make_key_value(self.state_dir, TASK, self.name, pairs)

    def save(self, applied_offset: int) -> None:
        """Keep the store, and take a snapshot of it."""
        self.keep(applied_offset)
        with self.open() as store:
            report = store.snapshot(self.state_dir)
        assert not report.failed, report.failed

    def rows(self, state_dir: Path | None = None) -> dict[bytes, bytes]:
        return self._raw(state_dir)["default"]

    def applied(self, state_dir: Path | None = None) -> int:
        noted = self._raw(state_dir)["offsets"][f"{self.changelog.topic}-0".encode()]
        return int.from_bytes(noted, "big")

    def _raw(self, state_dir: Path | None) -> dict[str, dict[bytes, bytes]]:
        folder = (state_dir or self.target) / APPLICATION / TASK / "rocksdb" / self.name
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        return raw_contents(folder, scratch)


def restore_and_replay(reached: Callable[[str], None], *, settings: str, target: str) -> None:
    """What a child process does that is to be killed."""

    def heard(event: Event) -> None:
        if isinstance(event, Advanced) and event.stage == "replay":
            reached("records applied")

    config = load_config(env=msgspec.json.decode(settings, type=dict[str, str]))
    with client.open(config=config) as store:
        store.restore(target=Path(target), replay=ReplayGoal(), listener=heard, replace=True)


def snapshot_from_changelog(reached: Callable[[str], None], *, settings: str) -> None:
    """What a child process does that is to be killed."""

    def heard(event: Event) -> None:
        if isinstance(event, Advanced) and event.stage == "replay":
            reached("records applied")

    config = load_config(env=msgspec.json.decode(settings, type=dict[str, str]))
    with client.open(config=config) as store:
        store.snapshot(capture="changelog", listener=heard)

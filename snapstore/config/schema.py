"""What can be configured: one struct per section of the file, with its defaults."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from snapstore.model.units import Bytes

Count = Annotated[int, msgspec.Meta(ge=1)]
Keep = Annotated[int, msgspec.Meta(ge=0)]
Octal = Annotated[str, msgspec.Meta(pattern="^0?[0-7]{3}$")]

Scalar = str | bool | int | float


class RepositoryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where snapshots are kept. ``options`` are the storage's own, decoded by its plug-in."""

    url: str | None = None
    options: dict[str, object] = {}
    accept_unverified_uploads: bool = False


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the brokers are reached; ``properties`` go to librdkafka as they are."""

    bootstrap: str | None = None
    properties: dict[str, Scalar] = {}


class StateConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the application keeps its stores."""

    dir: str | None = None
    layout: str = "kafka-streams"
    options: dict[str, object] = {}
    application: str | None = None
    instance: str | None = None
    guarantee: Literal["auto", "at_least_once", "exactly_once", "exactly_once_v2"] = "auto"
    cache_dir: str = "~/.cache/snapstore"


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs for one store, by its name.

    ``changelog`` is the topic where the layout cannot know it, or the word ``none``. The rest says
    how the application made the store, for a replay, where files and changelog do not tell:
    ``in_memory`` for one that has no files, ``subtopology`` of its tasks, ``format`` of its values,
    ``keys`` of a window or a session store, ``retention`` of those and of a versioned store's
    history, ``segment_interval`` of all three.
    """

    changelog: str | None = None
    backend: str | None = None
    skip: bool = False
    in_memory: bool = False
    subtopology: Keep | None = None
    format: Literal["plain", "timestamped", "versioned", "headers", "session-headers"] | None = None
    keys: Literal["window", "session"] | None = None
    retention: timedelta | None = None
    segment_interval: timedelta | None = None

    @property
    def rules(self) -> dict[str, object]:
        """What was said of how the application made the store."""
        spans = {"retention_ms": self.retention, "segment_interval_ms": self.segment_interval}
        given = {"format": self.format, "keys": self.keys, "in_memory": self.in_memory or None} | {
            name: None if span is None else span // timedelta(milliseconds=1)
            for name, span in spans.items()
        }
        return {name: value for name, value in given.items() if value is not None}


class SnapshotConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where snapshots are taken from: the disk as it is, or brought to the end of the changelog.

    ``auto`` takes the disk where it says its offset and lags by no more than ``max_lag_records``;
    without Kafka there is only the disk.
    """

    capture: Literal["auto", "disk", "roll-forward", "changelog"] = "auto"
    max_lag_records: Keep = 10_000


class TransferConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How fast bytes move. ``limit_rate`` is bytes per second over all stores; None: no limit."""

    parallel: Count = 8
    limit_rate: Bytes | None = None


class RestoreConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose the restored files are, and what happens to what was there.

    ``owner`` is ``user:group`` (names or numbers); None: that of the target directory.
    """

    owner: str | None = None
    file_mode: Octal = "640"
    dir_mode: Octal = "750"
    keep_replaced: bool = False


class RetentionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which snapshots of each store stay. ``keep_last`` counts the newest by offset."""

    keep_last: Keep = 3
    keep_within: timedelta | None = None
    keep_hourly: Keep = 0
    keep_daily: Keep = 0
    keep_weekly: Keep = 0
    keep_monthly: Keep = 0
    keep_yearly: Keep = 0
    grace: timedelta = timedelta(days=1)


class LoggingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes to the log file; the terminal is governed by ``-v`` and ``-q``.

    ``info`` is a line for the beginning and the end of each run and for each store, note and error.
    """

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: str | None = None
    format: Literal["text", "json"] = "text"


class Sections(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of a configuration file.

    ``backends`` holds the settings of backends by their name, decoded by their plug-ins.
    """

    repository: RepositoryConfig = RepositoryConfig()
    kafka: KafkaConfig = KafkaConfig()
    state: StateConfig = StateConfig()
    backends: dict[str, dict[str, object]] = {}
    stores: dict[str, StoreConfig] = {}
    snapshot: SnapshotConfig = SnapshotConfig()
    transfer: TransferConfig = TransferConfig()
    restore: RestoreConfig = RestoreConfig()
    retention: RetentionConfig = RetentionConfig()
    logging: LoggingConfig = LoggingConfig()


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration in force.

    ``origins`` tells, by dotted key, where a value that is not a default came from; ``path`` is
    the file that was read, if any. ``notes`` are sentences on what was passed over.
    """

    sections: Sections = Sections()
    origins: Mapping[str, str] = {}
    path: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def repository(self) -> RepositoryConfig:
        return self.sections.repository

    @property
    def kafka(self) -> KafkaConfig:
        return self.sections.kafka

    @property
    def state(self) -> StateConfig:
        return self.sections.state

    @property
    def backends(self) -> Mapping[str, Mapping[str, object]]:
        return self.sections.backends

    @property
    def stores(self) -> Mapping[str, StoreConfig]:
        return self.sections.stores

    @property
    def snapshot(self) -> SnapshotConfig:
        return self.sections.snapshot

    @property
    def transfer(self) -> TransferConfig:
        return self.sections.transfer

    @property
    def restore(self) -> RestoreConfig:
        return self.sections.restore

    @property
    def retention(self) -> RetentionConfig:
        return self.sections.retention

    @property
    def logging(self) -> LoggingConfig:
        return self.sections.logging

    def origin(self, key: str) -> str:
        """Return where the value at a dotted key came from; ``default`` where nobody set it."""
        return self.origins.get(key, "default")

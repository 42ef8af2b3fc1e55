"""What can be set for the layout `kafka-streams`."""

from typing import Annotated, Literal

import msgspec

from snapstore.errors import ConfigError
from snapstore.layouts.kafka_streams.names import NO_CHANGELOG
from snapstore.model.identity import StoreId
from snapstore.model.records import KeySchema, StoreFormat

Guarantee = Literal["auto", "at_least_once", "exactly_once", "exactly_once_v2"]


class StoreRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the application made a store, where its files and its changelog do not tell.

    ``format``: how values are stored; ``keys``: those of a window (or join) or a session store.
    ``in_memory``: the application keeps the store in memory, and nothing of it on the disk.
    ``retention_ms`` is of window and session stores and of the history of versioned ones,
    ``segment_interval_ms`` of all three.
    """

    format: StoreFormat | Literal["versioned"] | None = None
    keys: KeySchema | None = None
    in_memory: bool = False
    retention_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    segment_interval_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None


class KafkaStreamsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a store by its name where the files do not tell, or the
    word ``none`` for one without. ``guarantee`` is the application's `processing.guarantee`;
    ``auto`` goes by what the files show. ``rules`` are by the store's name.

    ``assume_stopped_without_locks``: where the file system has no locks, nothing tells whether the
    application runs; it is taken for stopped.
    """

    changelogs: dict[str, str] = {}
    rules: dict[str, StoreRules] = {}
    guarantee: Guarantee = "auto"
    assume_stopped_without_locks: bool = False

    @property
    def exactly_once(self) -> bool:
        return self.guarantee in ("exactly_once", "exactly_once_v2")

    def has_no_changelog(self, store: str) -> bool:
        return self.changelogs.get(store) == NO_CHANGELOG


def contradiction(store: StoreId, topic: str) -> ConfigError:
    """A store that is configured to have no changelog, and its files name one."""
    return ConfigError(
        f"{store} is configured without a changelog, and its files note an offset of {topic}",
        hint="remove the setting, or write the topic's name",
        store=str(store),
        topic=topic,
    )

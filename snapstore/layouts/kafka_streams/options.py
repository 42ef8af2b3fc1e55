"""What can be set for the layout `kafka-streams`."""

from typing import Literal

import msgspec

from snapstore.errors import ConfigError
from snapstore.layouts.kafka_streams.names import NO_CHANGELOG
from snapstore.model.identity import StoreId

Guarantee = Literal["auto", "at_least_once", "exactly_once", "exactly_once_v2"]


class KafkaStreamsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelogs`` gives the topic of a store by its name where the files do not tell, or the
    word ``none`` for one without. ``guarantee`` is the application's `processing.guarantee`;
    ``auto`` goes by what the files show."""

    changelogs: dict[str, str] = {}
    guarantee: Guarantee = "auto"

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

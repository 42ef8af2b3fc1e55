"""What of a store is content, and what a rebuild from its changelog must have as well."""

from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, StoreRules
from snapstore.layouts.kafka_streams.tasks import KEY_VALUE
from snapstore.model.changelog import PartitionState
from snapstore.model.content import ContentRules
from snapstore.model.records import OFFSETS_FAMILY, format_of, older_families
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView

_LATEST_VERSIONS = b"\xff" * 8
"""Segment -1, before the key (`RocksDBVersionedStore`)."""


def content_rules(
    location: StoreLocation,
    view: StoreView,
    state: PartitionState,
    options: KafkaStreamsOptions,
) -> ContentRules:
    """Leave out the offsets; tell old formats and a versioned store's latest values apart.

    Raises NotReplayableError for files of no known format.
    """
    families = frozenset(name for each in view.databases for name in view.families(each))
    if not families:
        return ContentRules(left_out=frozenset({OFFSETS_FAMILY}))
    form = format_of(families)
    given = options.rules.get(location.store.store, StoreRules()).format
    presumed = given is None and state.min_compaction_lag_ms > 0
    versioned = (
        form == "plain" and location.store_type == KEY_VALUE and (given == "versioned" or presumed)
    )
    return ContentRules(
        left_out=frozenset({OFFSETS_FAMILY}),
        older=frozenset(older_families(form, families)),
        latest_prefix=_LATEST_VERSIONS if versioned else None,
    )

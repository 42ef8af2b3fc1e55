"""Delete keys of a changelog in the files of a store.

In every format but the versioned one a key of the changelog is the key in the database
(`snapstore.model.records`). A key of a window, session or join store holds its time, so that it can
be in the one segment only that covers it: it is deleted in all of them.
"""

from collections.abc import Sequence

from snapstore.errors import NotReplayableError
from snapstore.layouts.kafka_streams.family import FAMILY, read_family
from snapstore.layouts.kafka_streams.names import GLOBAL
from snapstore.layouts.kafka_streams.options import KafkaStreamsOptions, StoreRules
from snapstore.layouts.kafka_streams.tasks import IN_MEMORY, KEY_VALUE, SEGMENTED
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import StoreId
from snapstore.model.records import format_of
from snapstore.model.resume import first_to_read
from snapstore.model.snapshot import Deletion
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import SeekableView, StoreView, StoreWriter

_LATEST_VERSIONS = b"\xff" * 8
"""Segment -1 of a versioned store, before the key (`RocksDBVersionedStore`)."""


def can_delete(
    store: StoreId,
    store_type: str,
    state: PartitionState,
    view: StoreView | None,
    options: KafkaStreamsOptions,
) -> bool:
    """Say no for versioned stores, and for those that an application may fill by its own code."""
    given = options.rules.get(store.store, StoreRules()).format
    if store_type not in (KEY_VALUE, SEGMENTED, IN_MEMORY) or given == "versioned":
        return False
    if given is not None:
        return True
    if store.task == GLOBAL or state.min_compaction_lag_ms:
        return False
    return (
        view is None
        or store_type == SEGMENTED
        or not any(_may_be_versioned(view, name) for name in view.databases)
    )


def delete_keys(
    writer: StoreWriter,
    location: StoreLocation,
    position: ChangelogPosition,
    deletions: Sequence[Deletion],
    options: KafkaStreamsOptions,
) -> None:
    """Write the deletions into every database that has not applied them."""
    given = options.rules.get(location.store.store, StoreRules()).format
    for name in writer.databases:
        families = frozenset(writer.families(name))
        ambiguous = given is None and location.store_type != SEGMENTED
        if ambiguous and _may_be_versioned(writer, name):
            raise NotReplayableError(
                f"{location.store} may be versioned, so that no key can be deleted in its files",
                hint=f"configure stores.{location.store.store}.format",
                store=str(location.store),
            )
        start = _first_lacking(writer, location, position, name)
        gone = [(each.key, None) for each in deletions if each.offset >= start]
        if gone:
            writer.write(name, dict.fromkeys(sorted(families - {FAMILY}), gone))


def _first_lacking(
    writer: StoreWriter, location: StoreLocation, position: ChangelogPosition, name: str
) -> int:
    """Return the first offset that a database may not have applied."""
    if FAMILY not in writer.families(name):
        return first_to_read(position)
    noted = read_family(writer.entries(name, FAMILY), name).offsets.get(position.changelog)
    if noted is None or noted < 0:
        return 0
    applied = noted - 1 if location.store.task == GLOBAL else noted
    return first_to_read(ChangelogPosition(position.changelog, applied))


def _may_be_versioned(view: StoreView, database: str) -> bool:
    """Whether there is a key like that of a latest version; few keys of other stores are."""
    if format_of(frozenset(view.families(database))) != "plain":
        return False
    pairs = (
        view.scan_from(database, "default", _LATEST_VERSIONS)
        if isinstance(view, SeekableView)
        else view.scan(database, "default")
    )
    return any(key.startswith(_LATEST_VERSIONS) for key, _ in pairs)

"""Apply records to a versioned store: one database that holds all its segments."""

from collections.abc import Iterable, Sequence

from snapstore.layouts.kafka_streams.replay_databases import Databases, new_database
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.versioned import VersionedOptions, VersionedReplay

_FAMILY = "default"


class VersionedStoreReplay:
    """Implements StoreReplay."""

    def __init__(
        self,
        databases: Databases,
        root: str,
        options: VersionedOptions,
        entries: Iterable[tuple[bytes, bytes]],
    ) -> None:
        self._databases = databases
        self._root = root
        self._replay = VersionedReplay(options, self._read, entries)

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        databases, root = self._databases, self._root
        if root not in databases.applied:
            databases.create(root, new_database("plain", databases.subject.location.generation))
        for record in databases.fresh(root, records):
            self._replay.apply(record)
        writes = self._replay.take()
        emptied = {_FAMILY: writes.dropped_prefixes}
        databases.write(root, {_FAMILY: writes.entries.items()}, reached, emptied=emptied)

    def _read(self, key: bytes) -> bytes | None:
        return self._databases.writer.get(self._root, _FAMILY, key)

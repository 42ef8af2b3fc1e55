"""Apply records to a window, session or join store: one database for each segment of time.

As in `AbstractRocksDBSegmentedBytesStore.restoreAllInternal`: the newest time is taken over a whole
batch first, records of segments that are past the retention by then are left out, and those
segments are removed. Kafka Streams forgets the newest time at each start; here it is found again
from the entries of the newest segment, so that late records that were dropped once stay dropped.
"""

from collections import defaultdict
from collections.abc import Sequence

from snapstore.layouts.kafka_streams.replay_databases import Databases
from snapstore.layouts.kafka_streams.segments import SegmentRules
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.records import (
    FAMILIES,
    StoreFormat,
    older_families,
    segment_timestamp_ms,
    to_pairs,
)
from snapstore.model.segment_names import segment_time


class SegmentedReplay:
    """Implements StoreReplay."""

    def __init__(
        self,
        databases: Databases,
        form: StoreFormat,
        families: Sequence[str],
        rules: SegmentRules,
    ) -> None:
        self._databases = databases
        self._families = families
        self._family = FAMILIES[form]
        self._older = older_families(form, frozenset(families))
        self._form = form
        self._rules = rules
        location = databases.subject.location
        self._store = location.store.store
        self._prefix = f"{location.root}/{self._store}."
        self._newest_ms = self._newest_time()

    def apply(self, records: Sequence[ChangelogRecord], reached: int) -> None:
        for segment, each in self._by_segment(records).items():
            self._write(self._name(segment), each, reached)
        databases = self._databases
        oldest = self._rules.oldest_live(self._newest_ms)
        for name in databases.names:
            if self._segment(name) < oldest:
                databases.drop(name)
            elif databases.applied[name] < reached - 1:
                databases.write(name, {}, reached)

    def _by_segment(self, records: Sequence[ChangelogRecord]) -> dict[int, list[ChangelogRecord]]:
        keys, segment_of = self._rules.keys, self._rules.segment_of
        times = [
            (record, segment_timestamp_ms(keys, record.key))
            for record in records
            if record.key is not None
        ]
        self._newest_ms = max([self._newest_ms, *(time for _, time in times)])
        oldest = self._rules.oldest_live(self._newest_ms)
        found: defaultdict[int, list[ChangelogRecord]] = defaultdict(list)
        for record, time in times:
            segment = segment_of(time)
            if segment >= oldest:
                found[segment].append(record)
        return found

    def _write(self, name: str, records: Sequence[ChangelogRecord], reached: int) -> None:
        databases = self._databases
        if name not in databases.applied:
            databases.create(name, self._families)
        pairs = to_pairs(self._form, databases.fresh(name, records))
        older = databases.outdated(name, self._older)
        gone = [(key, None) for key, _ in pairs] if older else []
        databases.write(name, {**dict.fromkeys(older, gone), self._family: pairs}, reached)

    def _newest_time(self) -> int:
        """Return the newest time in the newest segment that has entries; 0 where none has."""
        keys, writer = self._rules.keys, self._databases.writer
        for name in sorted(self._databases.names, key=self._segment, reverse=True):
            times = (segment_timestamp_ms(keys, key) for key, _ in writer.scan(name, self._family))
            newest = max(times, default=None)
            if newest is not None:
                return newest
        return 0

    def _name(self, segment: int) -> str:
        """Return the database of a segment; one with an old name keeps it."""
        named = (name for name in self._databases.names if self._segment(name) == segment)
        return next(named, f"{self._prefix}{segment * self._rules.interval_ms}")

    def _segment(self, name: str) -> int:
        return segment_time(self._store, name) // self._rules.interval_ms

"""What time and which segment an entry of a window or session store belongs to.

The rules are those of `AbstractSegments` and `Stores.persistentWindowStore` (Kafka Streams 4.0 to
4.3): a segment covers an interval, half of the retention and no less than a minute unless it was
set; it goes as a whole once the newest time seen is a retention past it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from snapstore.errors import NotReplayableError
from snapstore.layouts.kafka_streams.options import StoreRules
from snapstore.model.changelog import PartitionState
from snapstore.model.records import KeySchema, segment_timestamp_ms

_LEAST_INTERVAL_MS = 60_000
_ADDITIONAL_RETENTION_MS = 24 * 3600 * 1000
"""Default of `windowstore.changelog.additional.retention.ms`."""

_SCHEMAS: tuple[KeySchema, ...] = ("window", "session")


class SegmentRules(msgspec.Struct, frozen=True, kw_only=True):
    """How the entries of a store are spread over its segments."""

    keys: KeySchema
    retention_ms: int
    interval_ms: int

    def segment_of(self, time_ms: int) -> int:
        return time_ms // self.interval_ms

    def oldest_live(self, newest_ms: int) -> int:
        """Return the oldest segment that is kept once that time was seen."""
        return max(0, newest_ms - self.retention_ms) // self.interval_ms


def find_rules(
    name: str, given: StoreRules, state: PartitionState, samples: Mapping[int, Iterable[bytes]]
) -> SegmentRules:
    """Return the rules that were configured, or that topic and files prove together.

    ``samples`` are keys by the start of their segment, in milliseconds. Raises NotReplayableError
    when nothing proves the rules, or the files contradict them.
    """
    retention_ms = given.retention_ms or _retention_of(name, state)
    interval_ms = given.segment_interval_ms or max(retention_ms // 2, _LEAST_INTERVAL_MS)
    keys = {start: [*each] for start, each in samples.items()}
    found = [
        schema
        for schema in ((given.keys,) if given.keys else _SCHEMAS)
        if _fit(schema, interval_ms, keys)
    ]
    proved = any(keys.values()) or (given.keys is not None and given.retention_ms is not None)
    if len(found) != 1 or not proved:
        reason = "its files contradict" if not found else "nothing proves"
        raise NotReplayableError(
            f"snapstore cannot tell how {name} is cut into segments: {reason} a retention of "
            f"{retention_ms} ms and segments of {interval_ms} ms",
            hint=f"configure stores.{name}.keys, .retention and .segment_interval as the "
            "application sets them, or let it replay by itself",
            store=name,
        )
    rules = SegmentRules(keys=found[0], retention_ms=retention_ms, interval_ms=interval_ms)
    _refuse_expired(name, rules, [start for start, each in keys.items() if each])
    return rules


def _retention_of(name: str, state: PartitionState) -> int:
    retention_ms = (state.retention_ms or 0) - _ADDITIONAL_RETENTION_MS
    if "delete" not in state.cleanup_policy.split(",") or retention_ms <= 0:
        raise NotReplayableError(
            f"the changelog of {name} does not tell the store's retention",
            hint=f"configure stores.{name}.retention as the application sets it",
            store=name,
            changelog=str(state.changelog),
        )
    return retention_ms


def _fit(schema: KeySchema, interval_ms: int, samples: Mapping[int, list[bytes]]) -> bool:
    if any(start % interval_ms for start in samples):
        return False
    try:
        return all(
            segment_timestamp_ms(schema, key) // interval_ms * interval_ms == start
            for start, keys in samples.items()
            for key in keys
        )
    except NotReplayableError:
        return False


def _refuse_expired(name: str, rules: SegmentRules, starts: list[int]) -> None:
    """A segment that should be gone by these rules is there: they are not the application's."""
    if starts and min(starts) // rules.interval_ms < rules.oldest_live(max(starts)):
        raise NotReplayableError(
            f"{name} keeps segments for longer than {rules.retention_ms} ms",
            hint=f"configure stores.{name}.retention as the application sets it",
            store=name,
        )

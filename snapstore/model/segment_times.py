"""Whether the rows in the segments of a store are of the times that the segments stand for."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import get_args

from snapstore.errors import NotReplayableError
from snapstore.model.records import KeySchema, segment_timestamp_ms
from snapstore.model.segment_names import segment_start


def misplaced_segment(store: str, samples: Mapping[str, Sequence[bytes]]) -> tuple[str, str] | None:
    """Return a segment, and the one whose rows it holds; None where nothing proves that.

    ``samples`` are keys by database. The time in a key belongs to the segment that begins before
    it, by less than the least distance of two segments. It is proved only where that is so of all
    keys by one way to write them, and by none of the ways all are in their own segment.
    """
    starts = {
        name: start
        for name in samples
        if (start := segment_start(store, name.rpartition("/")[2])) is not None
    }
    ordered = sorted(starts.values())
    if len(ordered) < 2 or len(set(ordered)) < len(ordered):
        return None
    least = min(later - earlier for earlier, later in pairwise(ordered))
    of_start = {start: name for name, start in starts.items()}
    found = [
        _wrong(schema, samples, starts, ordered, of_start, least) for schema in get_args(KeySchema)
    ]
    if () in found:
        return None
    return next((each for each in found if each), None)


def _wrong(
    schema: KeySchema,
    samples: Mapping[str, Sequence[bytes]],
    starts: Mapping[str, int],
    ordered: Sequence[int],
    of_start: Mapping[int, str],
    least: int,
) -> tuple[str, str] | tuple[()] | None:
    """Return a misplaced segment; empty where there is none, None where keys fit no segment."""
    found: tuple[str, str] | tuple[()] = ()
    for name, keys in samples.items():
        if name not in starts:
            continue
        for key in keys:
            try:
                time = segment_timestamp_ms(schema, key)
            except NotReplayableError:
                return None
            before = max((start for start in ordered if start <= time), default=None)
            if before is None or time - before >= least:
                return None
            if before != starts[name]:
                found = found or (name, of_start[before])
    return found

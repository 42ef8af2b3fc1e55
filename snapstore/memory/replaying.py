"""Bring a map forward from its changelog: all of the tail, or nothing of it."""

from collections.abc import Mapping
from datetime import timedelta

from snapstore.errors import NotReplayableError, UnknownOffsetError
from snapstore.memory.pair_map import PairMap
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import (
    CLOCK_MARGIN,
    Overrides,
    ResumePlan,
    confirm_tail,
    plan_rebuild,
)
from snapstore.model.snapshot import Fence
from snapstore.model.store import ChangelogPosition
from snapstore.operations.fence import check_fence
from snapstore.ports import Changelog, Clock


def replay(
    pairs: PairMap,
    changelog: Changelog,
    partition: ChangelogPartition,
    fence: Fence | None,
    *,
    clock: Clock,
    overrides: Overrides,
    clock_margin: timedelta = CLOCK_MARGIN,
) -> int:
    """Apply the records after the applied offset; return how many were new.

    On any error the map goes back to where it was. Raises UnknownOffsetError, the refusals of
    ``plan_resume`` and ``confirm_tail``, KafkaError, and NotReplayableError for a record that has
    no key.
    """
    positions = pairs.positions()
    if len(pairs) and not positions:
        raise UnknownOffsetError(
            "the store holds pairs, and nothing says which records of the changelog are in them",
            hint="note the applied offset, or begin with an empty store",
            changelog=str(partition),
        )
    plan = _plan(positions, changelog, partition, fence, clock, overrides, clock_margin)
    pairs.freeze()
    try:
        applied = 0
        with changelog.read(
            partition, plan.start, plan.stop, leader_epoch=plan.leader_epoch
        ) as tail:
            for batch in tail:
                for record in batch:
                    applied += apply_record(pairs, partition, record)
        confirm_tail(plan, tail.report, clock())
        if plan.stop > plan.start:
            pairs.note(partition, plan.stop - 1)
    except BaseException:
        pairs.roll_back()
        raise
    pairs.thaw(saved=False)
    return applied


def apply_record(pairs: PairMap, partition: ChangelogPartition, record: ChangelogRecord) -> bool:
    """Apply one record; False where it is applied already."""
    if record.key is None:
        raise NotReplayableError(
            f"the record at offset {record.offset} of {partition} has no key",
            hint="the topic is not the changelog of a store of pairs",
            changelog=str(partition),
            offset=record.offset,
        )
    return pairs.apply(partition, record.offset, record.key, record.value)


def _plan(
    positions: Mapping[ChangelogPartition, int],
    changelog: Changelog,
    partition: ChangelogPartition,
    fence: Fence | None,
    clock: Clock,
    overrides: Overrides,
    clock_margin: timedelta,
) -> ResumePlan:
    """Check the fence of what was restored, or read everything into a map that holds nothing."""
    now = clock()
    if partition not in positions:
        return plan_rebuild(changelog.inspect(partition, now=now), clock_margin=clock_margin)
    return check_fence(
        changelog,
        ChangelogPosition(partition, positions[partition]),
        fence,
        now=now,
        overrides=overrides,
        clock_margin=clock_margin,
    )

"""Decide which records bring a store forward: from where, and up to where."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from snapstore.errors import ConfigError, RefusedError
from snapstore.model.identity import StoreId
from snapstore.model.resume import ResumePlan
from snapstore.model.store import ChangelogPosition
from snapstore.ports import Changelog


class ReplayGoal(msgspec.Struct, frozen=True, kw_only=True):
    """Up to where to replay: the end of the log, or not beyond an offset or a time.

    ``to_offset`` is the last one that may be applied; of records at ``to_time`` or later none is.
    """

    to_offset: int | None = None
    to_time: datetime | None = None

    def __post_init__(self) -> None:
        if self.to_offset is not None and self.to_time is not None:
            raise ValueError("an offset and a time exclude each other")

    @property
    def is_end(self) -> bool:
        return self.to_offset is None and self.to_time is None


class PlannedReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one changelog partition to apply: those that ``plan`` starts with, to ``stop``.

    ``position`` is None for a store that is empty.
    """

    position: ChangelogPosition | None
    plan: ResumePlan
    stop: int

    @property
    def bounded(self) -> ResumePlan:
        """The plan up to where it is carried out."""
        return msgspec.structs.replace(self.plan, stop=self.stop)


def stop_at(changelog: Changelog, plan: ResumePlan, goal: ReplayGoal) -> int:
    """Return the offset before which the replay ends.

    Raises ConfigError when the log ends before the goal, and RefusedError when the store holds
    records beyond it already.
    """
    stop = plan.stop
    if goal.to_offset is not None:
        if goal.to_offset >= plan.stop:
            raise ConfigError(
                f"{plan.changelog} ends before {plan.stop}: there is no offset {goal.to_offset}",
                changelog=str(plan.changelog),
            )
        stop = goal.to_offset + 1
    if goal.to_time is not None:
        first = changelog.offset_at(plan.changelog, goal.to_time)
        stop = plan.stop if first is None else min(first, plan.stop)
    if stop < plan.start:
        raise RefusedError(
            f"the store holds the records of {plan.changelog} up to {plan.start - 1}, which is "
            f"beyond {stop - 1}",
            hint="name an older snapshot: REF@OFFSET or REF@TIME",
            changelog=str(plan.changelog),
        )
    return stop


def require_one(goal: ReplayGoal, stores: Sequence[StoreId]) -> None:
    """Raises ConfigError where an offset is meant for several stores: each counts its own."""
    if goal.to_offset is not None and len(set(stores)) != 1:
        raise ConfigError(
            f"--to-offset is of one changelog, and {len(set(stores))} stores were named",
            hint="name one store, or use --to-time",
        )


def held_to(
    planned: Sequence[PlannedReplay], proved: Sequence[ResumePlan]
) -> tuple[PlannedReplay, ...]:
    """Return replays that end no later than their snapshot was proved for.

    Whoever proved it may have known of a smaller ``delete.retention.ms`` meanwhile.
    """
    limits = {plan.changelog: plan.deadline for plan in proved if not plan.gap_free_required}
    return tuple(_held_to(each, limits.get(each.plan.changelog)) for each in planned)


def _held_to(planned: PlannedReplay, limit: datetime | None) -> PlannedReplay:
    own = planned.plan.deadline
    if limit is None or own is None or own <= limit:
        return planned
    plan = msgspec.structs.replace(planned.plan, deadline=limit)
    return msgspec.structs.replace(planned, plan=plan)


def narrowed(planned: PlannedReplay, position: ChangelogPosition) -> PlannedReplay:
    """Begin where the store has got to, if that is later than where it was fenced.

    What was applied in between was confirmed before it was. Raises RefusedError when the store is
    beyond the end of the plan.
    """
    # Offset 0 is also noted where nothing was applied (KAFKA-8755).
    start = 0 if position.applied_offset == 0 else position.resume_offset
    if start <= planned.plan.start:
        return planned
    if start > planned.stop:
        raise RefusedError(
            f"the store holds the records of {position.changelog} up to "
            f"{position.applied_offset}, which is beyond {planned.stop - 1}",
            hint="restore an older snapshot, or check that the store is of this topic",
            changelog=str(position.changelog),
        )
    plan = msgspec.structs.replace(planned.plan, start=start, leader_epoch=None, read_again=0)
    return PlannedReplay(position=position, plan=plan, stop=planned.stop)

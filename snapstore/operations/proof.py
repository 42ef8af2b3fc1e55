"""Say whether a snapshot can be restored: the one rule, which every verb asks.

What follows a snapshot is replayed by the application, or by snapstore. Nothing that was deleted in
between may come back. Proved is that by time (``model.horizon``), or by the log: if no offset is
missing in it, it tells all deletions there were, and they can be applied to the files first; or
snapstore must replay it, right away.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from msgspec import structs

from snapstore.errors import (
    IntegrityError,
    NotReplayableError,
    RefusedError,
    SnapshotNotFoundError,
    TombstoneHorizonError,
)
from snapstore.model.changelog import PartitionState
from snapstore.model.guarantee import require_committed_snapshot
from snapstore.model.horizon import retained_until
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.resume import (
    CLOCK_MARGIN,
    Overrides,
    ResumePlan,
    confirm_tail,
    require_deadline,
)
from snapstore.model.snapshot import Description, Fence, Position, Snapshot
from snapstore.operations.fence import check_seen
from snapstore.operations.guarantee import configured_guarantee
from snapstore.operations.replay_layout import deleting_layout, replay_layout
from snapstore.operations.replay_plan import ReplayGoal, stop_at
from snapstore.operations.tail import read_tail, settled
from snapstore.ports import Changelog, Clock, Layout
from snapstore.repository import Catalog

Layouts = Callable[[str], Layout]


class Proof:
    """Proves snapshots of one repository against their changelogs. Safe for several threads.

    ``goal`` is where snapstore ends a replay, None where the application replays. To a goal before
    the end of the log, what a snapshot notes of later deletions is of no use. ``inspect`` describes
    a partition as it is now.
    """

    def __init__(
        self,
        changelog: Changelog,
        catalog: Catalog,
        layouts: Layouts,
        clock: Clock,
        *,
        overrides: Overrides | None = None,
        goal: ReplayGoal | None = None,
        inspect: Callable[[ChangelogPartition], PartitionState] | None = None,
        clock_margin: timedelta = CLOCK_MARGIN,
    ) -> None:
        self._changelog = changelog
        self._catalog = catalog
        self._layouts = layouts
        self._clock = clock
        self._overrides = overrides or Overrides()
        self._goal = goal
        self._inspect = inspect or (lambda one: changelog.inspect(one, now=clock()))
        self._clock_margin = clock_margin

    def check(self, snapshot: Snapshot) -> tuple[ResumePlan, ...]:
        """Return what is to be replayed, one plan a position, or raise the RefusedError.

        Raises KafkaError or CredentialsError where the log could not be read.
        """
        self.require_committed(snapshot)
        positions = snapshot.description.positions
        plans = [self.check_position(snapshot, each) for each in positions]
        if self._goal is not None:
            for plan in plans:
                stop_at(self._changelog, plan, self._goal)
        return tuple(plans)

    def require_committed(self, snapshot: Snapshot) -> None:
        """Raise ExactlyOnceHotError for files that may hold writes of a transaction that aborts."""
        description = snapshot.description
        guarantee = configured_guarantee(self._layouts(description.layout))
        require_committed_snapshot(description, guarantee)

    def check_position(self, snapshot: Snapshot, each: Position) -> ResumePlan:
        """Return what is to be replayed in one changelog partition; raises as ``check``."""
        goal = self._goal
        plan = check_seen(
            self._changelog,
            self._inspect(each.position.changelog),
            each.position,
            each.fence,
            overrides=self._overrides,
            clock_margin=self._clock_margin,
            deletions_applied=goal is None or goal.is_end,
            between=self._later_fences(snapshot, each.position.changelog),
        )
        if not plan.gap_free_required:
            return plan
        if goal is None:
            return self._by_reading(plan, snapshot.description)
        if not goal.is_end:
            require_deadline(plan)
        self._require_no_gap(plan)
        return plan

    def _require_no_gap(self, plan: ResumePlan) -> None:
        """Raise TombstoneHorizonError where the replay of a plan would find records missing."""
        with self._changelog.read(
            plan.changelog, plan.start, plan.stop, leader_epoch=plan.leader_epoch
        ) as tail:
            for _ in tail:
                pass
            confirm_tail(plan, tail.report, self._clock())

    def _by_reading(self, plan: ResumePlan, description: Description) -> ResumePlan:
        """Prove a plan by the tail as it is now, or raise TombstoneHorizonError.

        A plan that still asks for a tail without a gap is right if snapstore carries it out.
        """
        changelog = plan.changelog
        seen = self._changelog.inspect(changelog, now=self._clock())
        deadline = retained_until(seen.observed_at, seen.delete_retention_ms, self._clock_margin)
        stop = seen.high_watermark
        if settled(self._changelog, seen, self._clock).log_end < stop:
            raise _unproved(plan, "an open transaction hides what follows it")
        tail = read_tail(
            self._changelog, changelog, plan.start, stop, leader_epoch=plan.leader_epoch
        )
        if not tail.report.gap_free:
            require_deadline(plan)
        layout = self._layouts(description.layout)
        deletions = tail.deletions
        known = deletions is not None and (not deletions or _can_delete(layout, description, seen))
        if deletions is not None and known and seen.observed_at < deadline:
            note = f"nothing dates what follows offset {plan.start - 1} of {changelog}: it was read"
            return structs.replace(
                plan,
                deadline=deadline,
                gap_free_required=False,
                deletions=deletions,
                notes=(*plan.notes, note),
            )
        if not can_replay(layout, description.store, description.store_type):
            raise _unproved(plan, "only a replay tells what it deletes, and snapstore cannot do it")
        note = (
            f"what follows offset {plan.start - 1} of {changelog} is right only if snapstore "
            "replays it: restore does"
        )
        return structs.replace(plan, deadline=None, notes=(*plan.notes, note))

    def _later_fences(self, snapshot: Snapshot, changelog: ChangelogPartition) -> Sequence[Fence]:
        """Return the fences of newer snapshots; an entry that cannot be used is passed over."""
        fences: list[Fence] = []
        for listed in self._catalog.list_store(snapshot.description.store).snapshots:
            if listed.id == snapshot.id:
                break
            try:
                newer = self._catalog.load(listed)
            except (IntegrityError, RefusedError, SnapshotNotFoundError):
                continue
            fences += [
                each.fence
                for each in newer.description.positions
                if each.position.changelog == changelog and each.fence is not None
            ]
        return fences


def _can_delete(layout: Layout, description: Description, state: PartitionState) -> bool:
    deleting = deleting_layout(layout)
    return deleting is not None and deleting.can_delete(
        description.store, description.store_type, state
    )


def can_replay(layout: Layout, store: StoreId, store_type: str) -> bool:
    """Whether snapstore can replay a store of that type."""
    rules = replay_layout(layout)
    if rules is None:
        return False
    try:
        rules.require_replayable(store, store_type)
    except NotReplayableError:
        return False
    return True


def _unproved(plan: ResumePlan, why: str) -> TombstoneHorizonError:
    return TombstoneHorizonError(
        f"deletions in {plan.changelog} may be lost before the application has replayed: {why}",
        hint="use a newer snapshot, or let the application rebuild from the changelog",
        changelog=str(plan.changelog),
        deadline=None,
    )

"""Prove snapshots against their changelogs before one of them is restored."""

from snapstore.model.guarantee import AUTO, require_committed_snapshot
from snapstore.model.resume import Overrides, ResumePlan
from snapstore.model.snapshot import Snapshot
from snapstore.operations.fence import check_fence
from snapstore.operations.replay_plan import ReplayGoal, stop_at
from snapstore.operations.restore_choice import Check
from snapstore.ports import Changelog, Clock


def checking(
    changelog: Changelog,
    clock: Clock,
    overrides: Overrides,
    goal: ReplayGoal | None = None,
    *,
    guarantee: str = AUTO,
) -> Check:
    """Return the check of a restore: every position of a snapshot against its fence.

    It raises the refusal, also of a snapshot that is beyond ``goal`` already, and of one whose
    files may hold writes of a transaction that aborts; or KafkaError when the log could not be
    read. ``guarantee`` is what is configured.
    """

    def check(snapshot: Snapshot) -> tuple[ResumePlan, ...]:
        require_committed_snapshot(snapshot.description, guarantee)
        plans = []
        for each in snapshot.description.positions:
            plan = check_fence(
                changelog, each.position, each.fence, now=clock(), overrides=overrides
            )
            if goal is not None:
                stop_at(changelog, plan, goal)
            plans.append(plan)
        return tuple(plans)

    return check

"""Prove snapshots against their changelogs before one of them is restored."""

from snapstore.model.resume import Overrides, ResumePlan
from snapstore.model.snapshot import Snapshot
from snapstore.operations.fence import check_fence
from snapstore.operations.restore_choice import Check
from snapstore.ports import Changelog, Clock


def checking(changelog: Changelog, clock: Clock, overrides: Overrides) -> Check:
    """Return the check of a restore: every position of a snapshot against its fence.

    It raises the refusal, or KafkaError when the log could not be read.
    """

    def check(snapshot: Snapshot) -> tuple[ResumePlan, ...]:
        return tuple(
            check_fence(changelog, each.position, each.fence, now=clock(), overrides=overrides)
            for each in snapshot.description.positions
        )

    return check

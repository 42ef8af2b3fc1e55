"""What a look at a state directory has found."""

from pathlib import Path

import msgspec

from snapstore.model.state_facts import TaskFacts
from snapstore.model.verdict import Bounds, Conditions, Kind, Verdict, worst_kind


class CheckedTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task as it was read, and what will happen to it.

    ``verdicts`` are of its stores, then of lines without a store. ``running``: an application has
    it open, and the verdicts say what would happen if it were killed now.
    """

    facts: TaskFacts
    conditions: Conditions
    verdicts: tuple[Verdict, ...]
    running: bool


class FsckReport(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks that were looked at; ``notes`` are sentences on what was not.

    ``scanned_pairs`` counts what was read of the stores' contents, None where that was not asked
    for; ``bounds`` are of the changelog partitions that Kafka was asked for, if it was.
    """

    state_dir: Path
    tasks: tuple[CheckedTask, ...]
    notes: tuple[str, ...] = ()
    scanned_pairs: int | None = None
    bounds: Bounds | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(verdict for task in self.tasks for verdict in task.verdicts)

    @property
    def worst(self) -> Kind:
        return worst_kind(self.verdicts)

"""What a restore has done."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from snapstore.model.accepted import Danger
from snapstore.operations.replay import ReplayedPartition
from snapstore.operations.restore_plan import Skipped, StorePlan, TaskPlan


class RestoredStore(msgspec.Struct, frozen=True, kw_only=True):
    """One store that is in place. ``resume_offsets`` are by ``topic:partition``.

    ``records_to_replay`` (no fewer than there are) is None where nothing could tell.
    ``replay_before`` is when the replay must have ended, None where there is no such time.
    ``replayed`` is what was applied already; the other numbers are after that. ``accepted`` are
    the dangers without whose acceptance it would have been refused.
    """

    store: str
    snapshot_id: str
    task_dir: Path
    fetched_files: int
    fetched_bytes: int
    reused_files: int
    reused_bytes: int
    resume_offsets: Mapping[str, int]
    records_to_replay: int | None
    skipped: tuple[Skipped, ...]
    replay_before: datetime | None = None
    replayed: tuple[ReplayedPartition, ...] = ()
    accepted: tuple[Danger, ...] = ()


class UnrestorableStore(msgspec.Struct, frozen=True, kw_only=True):
    """A store that was left out because no snapshot of it can be used, and why."""

    store: str
    code: str
    reason: str


class FailedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task directory that was left as it was, and why."""

    task_dir: Path
    code: str
    reason: str


class RestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """All tasks of one restore. ``replaced`` are the old directories that were kept."""

    target: Path
    stores: tuple[RestoredStore, ...]
    kept_stores: tuple[str, ...]
    replaced: tuple[Path, ...]
    failed: tuple[FailedTask, ...]
    notes: tuple[str, ...]
    unrestorable: tuple[UnrestorableStore, ...] = ()

    @property
    def fetched_bytes(self) -> int:
        return sum(store.fetched_bytes for store in self.stores)

    @property
    def reused_bytes(self) -> int:
        return sum(store.reused_bytes for store in self.stores)


def restored_store(
    plan: StorePlan, task: TaskPlan, replayed: tuple[ReplayedPartition, ...] = ()
) -> RestoredStore:
    """Return what was done for one store of a task whose plan was carried out."""
    wanted = plan.wanted
    resume_offsets = {
        str(each.position.changelog): each.position.resume_offset
        for each in wanted.snapshot.description.positions
    }
    records_to_replay, replay_before = wanted.records_to_replay, wanted.replay_before
    if replayed:
        resume_offsets |= {str(each.changelog): each.stop for each in replayed}
        records_to_replay = sum(max(0, each.log_end - each.stop) for each in replayed)
        deadlines = [each.deadline for each in replayed if each.deadline is not None]
        replay_before = min(deadlines, default=None)
    return RestoredStore(
        store=str(plan.store),
        snapshot_id=wanted.snapshot.id,
        task_dir=task.task_dir,
        fetched_files=sum(len(fetch.names) for fetch in plan.fetch),
        fetched_bytes=plan.fetch_bytes,
        reused_files=len(plan.reuse),
        reused_bytes=plan.reuse_bytes,
        resume_offsets=resume_offsets,
        records_to_replay=records_to_replay,
        skipped=wanted.skipped,
        replay_before=replay_before,
        replayed=replayed,
        accepted=wanted.accepted,
    )

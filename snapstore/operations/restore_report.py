"""What a restore has done."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from snapstore.operations.restore_plan import Skipped


class RestoredStore(msgspec.Struct, frozen=True, kw_only=True):
    """One store that is in place. ``resume_offsets`` are by ``topic:partition``.

    ``records_to_replay`` is None where nothing could tell.
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

    @property
    def fetched_bytes(self) -> int:
        return sum(store.fetched_bytes for store in self.stores)

    @property
    def reused_bytes(self) -> int:
        return sum(store.reused_bytes for store in self.stores)

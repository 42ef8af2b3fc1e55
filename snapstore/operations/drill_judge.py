"""Judge one store of a drill by what was compared, and say how long each part took."""

from pathlib import Path

import msgspec

from snapstore.model.manifest_rules import lies_in
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.units import count
from snapstore.operations.drill_report import (
    Comparison,
    DrilledPartition,
    DrilledStore,
    Outcome,
    Timing,
)
from snapstore.operations.rebuild import Rebuilt
from snapstore.operations.replay import ReplayedPartition
from snapstore.operations.replay_plan import PlannedReplay
from snapstore.operations.restore_plan import Wanted
from snapstore.operations.restore_report import RestoredStore

_SPOILT = frozenset({"integrity", "blob_missing", "blob_corrupt", "manifest_invalid"})


class RestoredCopy(msgspec.Struct, frozen=True, kw_only=True):
    """The restored store, brought to the end of its changelog."""

    location: StoreLocation
    positions: tuple[ChangelogPosition, ...]
    restored: RestoredStore
    restore_seconds: float
    planned: tuple[PlannedReplay, ...]
    replayed: tuple[ReplayedPartition, ...]


def location_of(wanted: Wanted, task_dir: Path) -> StoreLocation:
    description = wanted.snapshot.description
    names = [entry.name for entry in wanted.manifest.files]
    return StoreLocation(
        store=description.store,
        layout=description.layout,
        backend=description.backend,
        store_type=description.store_type,
        generation=description.generation,
        task_dir=task_dir,
        root=description.root,
        side_files=tuple(name for name in names if not lies_in(name, description.root)),
    )


def judged(
    drilled: DrilledStore,
    copy: RestoredCopy,
    built: Rebuilt,
    rebuild_seconds: float,
    comparison: Comparison,
) -> DrilledStore:
    outcome, code, reason = _verdict(drilled, comparison)
    return msgspec.structs.replace(
        drilled,
        outcome=outcome,
        code=code,
        reason=reason,
        comparison=comparison,
        partitions=tuple(
            DrilledPartition(
                changelog=str(planned.plan.changelog),
                applied_offset=position.applied_offset,
                end_offset=planned.stop,
                replayed_records=replayed.records,
                rebuild_start=rebuilt.start,
                rebuilt_records=rebuilt.records,
            )
            for position, planned, replayed, rebuilt in zip(
                copy.positions, copy.planned, copy.replayed, built.replayed, strict=True
            )
        ),
        timing=Timing(
            restored_bytes=copy.restored.fetched_bytes,
            restore_seconds=copy.restore_seconds,
            replay_seconds=sum(each.seconds for each in copy.replayed),
            rebuild_seconds=rebuild_seconds,
        ),
    )


def _verdict(
    drilled: DrilledStore, comparison: Comparison
) -> tuple[Outcome, str | None, str | None]:
    if comparison.different_keys:
        first = comparison.differences[0]
        return (
            "differs",
            "drill_difference",
            f"{count(comparison.different_keys, 'key')} other than in a rebuild of the changelog;"
            f" the first is {first.key} in {first.database} ({first.kind.replace('_', ' ')})",
        )
    spoilt = [each for each in drilled.passed_over if each.code in _SPOILT]
    if spoilt:
        reason = f"a newer snapshot is damaged: {spoilt[0].reason}"
        return "damaged", spoilt[0].code, reason
    if comparison.not_compared:
        return "partly", None, f"not compared: {'; '.join(comparison.not_compared)}"
    return "equal", None, None

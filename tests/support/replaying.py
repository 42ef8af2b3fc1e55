"""Replay records on a store as the operation does, without a broker."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.model.changelog import ChangelogRecord, PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import ReplayLayout, ReplaySubject

Committed = Callable[[str, ChangelogPartition], int | None]

EVERYTHING = 1 << 62


def all_committed(group: str, source: ChangelogPartition) -> int | None:
    return EVERYTHING


def state_of(partition: ChangelogPartition, cleanup_policy: str = "compact") -> PartitionState:
    return PartitionState(
        changelog=partition,
        cluster_id="c",
        topic_id="t",
        partition_count=2,
        log_start=0,
        log_end=EVERYTHING,
        high_watermark=EVERYTHING,
        end_leader_epoch=0,
        cleanup_policy=cleanup_policy,
        delete_retention_ms=86_400_000,
        retention_ms=None,
        min_compaction_lag_ms=0,
        segment_ms=604_800_000,
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def replay(
    layout: ReplayLayout,
    location: StoreLocation,
    position: ChangelogPosition | None,
    state: PartitionState,
    records: Sequence[ChangelogRecord],
    reached: int,
    *,
    committed: Committed | None = all_committed,
) -> None:
    """Apply the records in several batches, the last of which holds none."""
    subject = ReplaySubject(
        location=location,
        changelog=state.changelog,
        position=position,
        state=state,
        committed=committed,
    )
    with RocksDBBackend().open_writer(location.task_dir, location.root) as writer:
        store = layout.open_replay(writer, subject)
        for start in range(0, len(records), 100):
            batch = records[start : start + 100]
            store.apply(batch, batch[-1].offset + 1)
        store.apply((), reached)


def contents(location: StoreLocation) -> dict[str, dict[bytes, bytes]]:
    """Return every family of a store of one database."""
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        (database,) = view.databases
        return {name: dict(view.entries(database, name)) for name in view.families(database)}

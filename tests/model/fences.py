"""A snapshot's fence, the log two hours later, and the plan that follows from the two."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.resume import Evidence, Overrides, ResumePlan, plan_resume
from snapstore.model.snapshot import Fence, RecordMark
from snapstore.model.store import ChangelogPosition

CHANGELOG = ChangelogPartition("app-counts-changelog", 3)
CAPTURED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW = CAPTURED + timedelta(hours=2)
DAY_MS = 24 * 3600 * 1000
MARGIN = timedelta(minutes=5)

APPLIED = RecordMark(offset=99, leader_epoch=4, timestamp_ms=1, sha256="aa")
LAST = RecordMark(offset=109, leader_epoch=4, timestamp_ms=2, sha256="bb")


def fence(**changes: Any) -> Fence:
    """Applied up to 99 while the log ended before 110; at the time of capture the log was read."""
    taken = Fence(
        cluster_id="cluster",
        topic_id="topic",
        partition_count=4,
        end_offset=110,
        applied=APPLIED,
        last=LAST,
        end_leader_epoch=4,
        high_watermark=110,
        observed_at=CAPTURED,
        behind_since=CAPTURED - timedelta(hours=1),
        delete_retention_ms=DAY_MS,
        cleanup_policy="compact",
    )
    return msgspec.structs.replace(taken, **changes)


def state(**changes: Any) -> PartitionState:
    """Two hours later: 90 more offsets, one more leader."""
    seen = PartitionState(
        changelog=CHANGELOG,
        cluster_id="cluster",
        topic_id="topic",
        partition_count=4,
        log_start=0,
        log_end=200,
        high_watermark=200,
        end_leader_epoch=5,
        cleanup_policy="compact",
        delete_retention_ms=DAY_MS,
        retention_ms=None,
        min_compaction_lag_ms=0,
        segment_ms=7 * DAY_MS,
        observed_at=NOW,
    )
    if "log_end" in changes:
        changes.setdefault("high_watermark", changes["log_end"])
    return msgspec.structs.replace(seen, **changes)


def plan(
    taken: Fence | None,
    seen: PartitionState,
    *,
    applied_offset: int = 99,
    applied: RecordMark | None = APPLIED,
    last: RecordMark | None = LAST,
    overrides: Overrides | None = None,
) -> ResumePlan:
    return plan_resume(
        ChangelogPosition(CHANGELOG, applied_offset),
        taken,
        Evidence(state=seen, applied=applied, last=last),
        overrides=overrides or Overrides(),
        clock_margin=MARGIN,
    )

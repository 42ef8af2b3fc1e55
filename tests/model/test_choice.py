"""Which of several snapshots a restore takes."""

from datetime import UTC, datetime, timedelta

import pytest

from snapstore.errors import ChangelogTruncatedError, KafkaError, LogDivergedError, RefusedError
from snapstore.model.choice import Choice, choose
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import FORMAT, Description, Position, Snapshot
from snapstore.model.store import ChangelogPosition

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CHANGELOG = ChangelogPartition("app-counts-changelog", 3)


def snapshot(name: str, applied_offset: int, minutes: int) -> Snapshot:
    position = Position(position=ChangelogPosition(CHANGELOG, applied_offset))
    description = Description(
        store=StoreId("app", "0_3", "counts"),
        layout="kafka-streams",
        backend="rocksdb",
        store_type="key-value",
        generation="kafka-streams-4.3",
        root="rocksdb/counts",
        databases=("rocksdb/counts",),
        positions=(position,),
        captured_at=NOON + timedelta(minutes=minutes),
        source="closed",
        instance="host",
        run="run",
        writer="test",
    )
    return Snapshot(
        format=FORMAT,
        id=name,
        description=description,
        files=1,
        size_bytes=1,
        new_files=1,
        new_bytes=1,
    )


def plans(chosen: Snapshot) -> tuple[ResumePlan, ...]:
    start = (chosen.description.applied_offset or 0) + 1
    plan = ResumePlan(changelog=CHANGELOG, cluster_id="c", topic_id="t", start=start, stop=1000)
    return (plan,)


OLD = snapshot("old", 100, 0)
LATER_CLOCK = snapshot("later-clock", 900, 5)
FARTHER = snapshot("farther", 1200, 1)


def choose_without(refusals: dict[str, Exception]) -> Choice:
    def check(candidate: Snapshot) -> tuple[ResumePlan, ...]:
        if candidate.id in refusals:
            raise refusals[candidate.id]
        return plans(candidate)

    return choose([OLD, FARTHER, LATER_CLOCK], check)


def test_the_newest_is_the_one_with_the_highest_offset_not_the_latest_clock() -> None:
    choice = choose_without({})
    assert choice.snapshot == FARTHER
    assert choice.plans == plans(FARTHER)
    assert choice.skipped == ()


def test_of_two_at_one_offset_the_later_is_newer() -> None:
    again = snapshot("again", 1200, 2)
    assert choose([again, FARTHER], plans).snapshot == again


def test_what_is_refused_is_skipped_and_named_with_its_reason() -> None:
    choice = choose_without(
        {
            "farther": LogDivergedError("another record at offset 1200"),
            "later-clock": ChangelogTruncatedError("begins at 950"),
        }
    )
    assert choice.snapshot == OLD
    assert [(skip.snapshot.id, skip.code, skip.reason) for skip in choice.skipped] == [
        ("farther", "log_diverged", "another record at offset 1200"),
        ("later-clock", "changelog_truncated", "begins at 950"),
    ]


def test_where_every_one_is_refused_none_is_chosen_and_all_are_named() -> None:
    choice = choose_without(
        {name: RefusedError(name) for name in ("old", "farther", "later-clock")}
    )
    assert choice.snapshot is None
    assert [skip.reason for skip in choice.skipped] == ["farther", "later-clock", "old"]


def test_a_log_that_cannot_be_read_leads_to_no_older_snapshot() -> None:
    with pytest.raises(KafkaError):
        choose_without({"farther": KafkaError("no answer")})


def test_without_snapshots_nothing_is_chosen_or_skipped() -> None:
    assert choose([], plans) == Choice(snapshot=None)

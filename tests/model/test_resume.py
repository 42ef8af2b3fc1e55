"""Where a replay begins and ends, and when it would be wrong: one row is one sentence."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from snapstore.errors import (
    ChangelogTruncatedError,
    KafkaError,
    LogDivergedError,
    PartitionCountError,
    SnapstoreError,
    TopicRecreatedError,
    UncheckedChangelogError,
)
from snapstore.model.resume import Overrides, plan_rebuild, require_checked, require_same_topic
from tests.model.fences import APPLIED, CAPTURED, LAST, MARGIN, NOW, fence, plan, state


def test_replay_goes_from_the_record_after_the_applied_one_to_the_end() -> None:
    made = plan(fence(), state())
    assert (made.start, made.stop, made.offsets) == (100, 200, 100)
    assert made.leader_epoch == 4
    assert made.deadline == CAPTURED - timedelta(hours=1) + timedelta(days=1) - MARGIN
    assert not made.gap_free_required
    assert made.notes == ()


EPOCH_OF_OTHER_LEADER = msgspec.structs.replace(APPLIED, leader_epoch=6)
OTHER_APPLIED = msgspec.structs.replace(APPLIED, sha256="cc")
OTHER_LAST = msgspec.structs.replace(LAST, sha256="cc")
NO_POLICY = {"cleanup_policy": "delete"}

REFUSED: dict[str, tuple[type[SnapstoreError], str, dict[str, Any]]] = {
    "another cluster": (TopicRecreatedError, "another cluster", {"seen": {"cluster_id": "other"}}),
    "same name, other topic": (
        TopicRecreatedError,
        "deleted and created again",
        {"seen": {"topic_id": "other"}},
    ),
    "a topic made again that is also shorter is called made again": (
        TopicRecreatedError,
        "deleted and created again",
        {"seen": {"topic_id": "other", "log_end": 20}},
    ),
    "a topic without an id proves nothing": (
        UncheckedChangelogError,
        "a topic without an id",
        {"taken": {"topic_id": ""}, "seen": {"topic_id": ""}},
    ),
    "a snapshot without a fence proves nothing": (
        UncheckedChangelogError,
        "without a fence",
        {"taken": None},
    ),
    "more partitions than before (G61)": (
        PartitionCountError,
        "had 4 partitions and has 6",
        {"seen": {"partition_count": 6}},
    ),
    "the log begins beyond the resume offset (G54)": (
        ChangelogTruncatedError,
        "begins at 120: the records 100 to 119, which follow the snapshot, are gone",
        {"seen": {"log_start": 120}},
    ),
    "an empty log that lost records after the snapshot (G57)": (
        ChangelogTruncatedError,
        "the records 100 to 4999, which",
        {"seen": {"log_start": 5000, "log_end": 5000}, "applied": None, "last": None},
    ),
    "offset 0 where record 0 is gone: it may never have been applied (G63)": (
        ChangelogTruncatedError,
        "the records 0 to 0, which",
        {"applied_offset": 0, "seen": {"log_start": 1}},
    ),
    "the log ends before the applied offset (G55)": (
        LogDivergedError,
        "is shorter than the snapshot: it ends before 50, and offset 99 was applied",
        {"seen": {"log_end": 50}, "applied": None, "last": None},
    ),
    "the log ends at the applied offset": (
        LogDivergedError,
        "is shorter than the snapshot",
        {"seen": {"log_end": 99}},
    ),
    "the log ends before the end that was seen at the capture": (
        LogDivergedError,
        "was cut back: it ended before 110 when the snapshot was taken, and ends before 105 now",
        {"seen": {"log_end": 105}},
    ),
    "the leader epoch went back": (
        LogDivergedError,
        "gone back from leader epoch 4 to 3",
        {"seen": {"end_leader_epoch": 3}},
    ),
    "another record at the applied offset": (
        LogDivergedError,
        "another record at offset 99",
        {"applied": OTHER_APPLIED},
    ),
    "the same record written again under another leader": (
        LogDivergedError,
        "another record at offset 99",
        {"applied": EPOCH_OF_OTHER_LEADER},
    ),
    "another record where the log ended at the capture": (
        LogDivergedError,
        "another record at offset 109",
        {"last": OTHER_LAST},
    ),
    "a record where there was none at the capture": (
        LogDivergedError,
        "where there was none",
        {"taken": {"applied": None}},
    ),
    "a record vanished from a topic that is not compacted": (
        LogDivergedError,
        "has lost the record at offset 99",
        {"taken": NO_POLICY, "seen": NO_POLICY, "applied": None},
    ),
    "an open transaction hides what was applied: try again": (
        KafkaError,
        "an open transaction on app-counts-changelog:3 begins at 98",
        {"taken": {"end_offset": 98}, "seen": {"log_end": 98, "high_watermark": 200}},
    ),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_refused(row: tuple[type[SnapstoreError], str, dict[str, Any]]) -> None:
    kind, message, case = row
    case = dict(case)
    changes = case.pop("taken", {})
    taken = None if changes is None else fence(**changes)
    seen = state(**case.pop("seen", {}))
    with pytest.raises(kind, match=message) as raised:
        plan(taken, seen, **case)
    assert raised.value.hint


def test_a_gap_names_its_first_and_last_offset() -> None:
    with pytest.raises(ChangelogTruncatedError) as raised:
        plan(fence(), state(log_start=120))
    facts = raised.value.facts
    assert (facts["first_missing"], facts["last_missing"]) == (100, 119)


ACCEPTED: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "an empty log that ends at the resume offset has nothing to replay (G57)": (
        (5000, 5000),
        {
            "applied_offset": 4999,
            "taken": {"end_offset": 5000, "applied": None, "last": None},
            "seen": {"log_start": 5000, "log_end": 5000},
            "applied": None,
            "last": None,
        },
    ),
    "a log that begins at the resume offset": ((100, 200), {"seen": {"log_start": 100}}),
    "a compacted log whose marked records are gone": ((100, 200), {"applied": None, "last": None}),
    "a snapshot that holds nothing yet reads from 0": (
        (0, 200),
        {"applied_offset": -1, "taken": {"applied": None}, "applied": None},
    ),
    "offset 0 is read again: it may stand for nothing (G63)": (
        (0, 200),
        {"applied_offset": 0, "taken": {"applied": None}, "applied": None},
    ),
    "brokers that tell no leader epoch": (
        (100, 200),
        {"taken": {"end_leader_epoch": None}, "seen": {"end_leader_epoch": None}},
    ),
    "a record that an open transaction hid at the capture": (
        (100, 200),
        {"taken": {"applied": None, "end_offset": 95}},
    ),
    "what open transactions hold now is left for later": (
        (100, 150),
        {"seen": {"log_end": 150, "high_watermark": 200}},
    ),
    "no fence, where the operator accepts that": (
        (100, 200),
        {"taken": None, "overrides": Overrides(allow_unchecked_changelog=True)},
    ),
    "no topic id, where the operator accepts that": (
        (100, 200),
        {"taken": {"topic_id": ""}, "overrides": Overrides(allow_unchecked_changelog=True)},
    ),
}


@pytest.mark.parametrize("row", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(row: tuple[tuple[int, int], dict[str, Any]]) -> None:
    expected, case = row
    case = dict(case)
    changes = case.pop("taken", {})
    taken = None if changes is None else fence(**changes)
    made = plan(taken, state(**case.pop("seen", {})), **case)
    assert (made.start, made.stop) == expected


def test_offset_0_is_read_again_and_checks_no_epoch_before_it() -> None:
    first = msgspec.structs.replace(APPLIED, offset=0)
    made = plan(fence(applied=first), state(), applied_offset=0, applied=first)
    assert (made.start, made.offsets, made.behind) == (0, 200, 199)
    assert made.leader_epoch is None


def test_accepting_an_unchecked_changelog_does_not_accept_another_topic() -> None:
    with pytest.raises(TopicRecreatedError):
        plan(
            fence(),
            state(topic_id="other"),
            overrides=Overrides(allow_unchecked_changelog=True, allow_missed_tombstones=True),
        )


def test_a_topic_replaced_while_it_was_read_is_refused() -> None:
    made = plan(fence(), state())
    require_same_topic(made, state(log_end=300))
    with pytest.raises(TopicRecreatedError, match="replaced while it was being read"):
        require_same_topic(made, state(topic_id="other"))


def test_without_kafka_a_restore_must_be_accepted_by_name() -> None:
    require_checked("the restore", Overrides(allow_unchecked_changelog=True))
    with pytest.raises(UncheckedChangelogError) as raised:
        require_checked("the restore", Overrides(allow_missed_tombstones=True))
    assert "--allow-unchecked-changelog" in (raised.value.hint or "")


REBUILT: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "a log that begins at 1 (G58)": ((1, 6), {"log_start": 1, "log_end": 6}),
    "an empty log whose offsets are not zero (G57)": (
        (5000, 5000),
        {"log_start": 5000, "log_end": 5000},
    ),
    "a new log": ((0, 0), {"log_start": 0, "log_end": 0}),
}


@pytest.mark.parametrize("row", REBUILT.values(), ids=REBUILT.keys())
def test_without_a_snapshot_all_that_is_left_is_read(
    row: tuple[tuple[int, int], dict[str, Any]],
) -> None:
    expected, seen = row
    made = plan_rebuild(state(**seen), clock_margin=MARGIN)
    assert (made.start, made.stop) == expected
    assert made.deadline == NOW + timedelta(days=1) - MARGIN


def test_a_rebuild_of_a_topic_that_is_not_compacted_has_no_deadline() -> None:
    assert plan_rebuild(state(cleanup_policy="delete")).deadline is None

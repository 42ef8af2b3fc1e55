"""What the end of a changelog says of the processing guarantee of its application."""

import msgspec
import pytest

from snapstore.errors import ExactlyOnceHotError
from snapstore.model.guarantee import (
    FoundGuarantee,
    LogEnd,
    at_capture,
    by_logs,
    of_snapshot,
    require_committed,
    written_under,
)
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import (
    Description,
    Fence,
    FoundBy,
    Position,
    ProcessingGuarantee,
    RecordMark,
)
from snapstore.model.store import ChangelogPosition
from tests.support.repository import describe

OWN = ChangelogPartition("app-counts-changelog", 0)
OTHER = ChangelogPartition("app-counts-changelog", 1)
STORE = StoreId("app", "0_0", "counts")
GLOBAL = StoreId("app", "global", "rates")


def end(
    log_end: int,
    last_record: int | None,
    *,
    high_watermark: int | None = None,
    changelog: ChangelogPartition = OWN,
) -> LogEnd:
    return LogEnd(
        changelog=changelog,
        log_end=log_end,
        high_watermark=log_end if high_watermark is None else high_watermark,
        last_record=last_record,
    )


ALOS, EOS = end(10, 9), end(10, 8)
OPEN_TRANSACTION = end(10, 9, high_watermark=12)


def position(log: LogEnd) -> Position:
    fence = Fence(
        cluster_id="c",
        topic_id="t",
        partition_count=1,
        end_offset=log.log_end,
        high_watermark=log.high_watermark,
        last=None if log.last_record is None else RecordMark(offset=log.last_record),
    )
    return Position(position=ChangelogPosition(log.changelog, 5), fence=fence)


def described(
    log: LogEnd | None,
    *,
    status: str | None = "open",
    guarantee: ProcessingGuarantee | None = None,
    found_by: FoundBy | None = None,
) -> Description:
    return msgspec.structs.replace(
        describe(),
        store=STORE,
        positions=() if log is None else (position(log),),
        status=status,
        guarantee=guarantee,
        guarantee_found_by=found_by,
    )


@pytest.mark.parametrize(
    ("why", "log", "said"),
    [
        ("a record is the last", ALOS, "at_least_once"),
        ("a marker is the last", EOS, "exactly_once"),
        ("an aborted transaction is the last", end(10, 3), "exactly_once"),
        ("a transaction is open", OPEN_TRANSACTION, "exactly_once"),
        ("nothing but an open transaction", end(0, None, high_watermark=3), "exactly_once"),
        ("the log is empty", end(0, None), None),
        ("all of it was deleted", end(10, None), None),
    ],
)
def test_the_end_of_a_log_tells_whether_its_last_writer_uses_transactions(
    why: str, log: LogEnd, said: str | None
) -> None:
    assert written_under(log) == said, why


def test_a_topic_that_others_write_says_nothing_of_the_application() -> None:
    source = end(10, 9, changelog=ChangelogPartition("orders", 0))
    stranger = end(10, 9, changelog=ChangelogPartition("other-counts-changelog", 0))
    assert by_logs("app", [source, stranger]).guarantee is None


def test_partitions_that_disagree_say_that_the_guarantee_was_changed() -> None:
    found = by_logs("app", [ALOS, end(10, 8, changelog=OTHER)])
    assert found.guarantee is None
    assert "changed" in found.why


def test_what_is_configured_comes_before_what_the_log_says() -> None:
    assert at_capture(STORE, "exactly_once_v2", [position(ALOS)]).guarantee == "exactly_once"
    assert at_capture(STORE, "at_least_once", [position(EOS)]).guarantee == "at_least_once"
    assert at_capture(STORE, "auto", [position(ALOS)]).found_by == "changelog"


def test_an_open_transaction_contradicts_at_least_once() -> None:
    found = at_capture(STORE, "at_least_once", [position(OPEN_TRANSACTION)])
    assert found.guarantee is None
    assert "open transaction" in found.why


def test_a_snapshot_is_judged_by_what_its_changelog_said_then_not_by_what_is_configured_now() -> (
    None
):
    then = described(EOS, guarantee="at_least_once", found_by="changelog")
    assert of_snapshot(then, "exactly_once_v2").at_least_once


def test_a_snapshot_of_a_guarantee_that_was_only_configured_does_not_outlive_a_correction() -> None:
    wrong = described(None, guarantee="at_least_once", found_by="configured")
    assert of_snapshot(wrong, "at_least_once").at_least_once
    assert of_snapshot(wrong, "auto").at_least_once
    assert of_snapshot(wrong, "exactly_once_v2").guarantee is None


@pytest.mark.parametrize(("log", "said"), [(ALOS, "at_least_once"), (EOS, "exactly_once")])
def test_a_snapshot_from_before_the_guarantee_was_noted_is_judged_by_its_fence(
    log: LogEnd, said: str
) -> None:
    assert of_snapshot(described(log, status=None), "auto").guarantee == said


def found(guarantee: ProcessingGuarantee | None) -> FoundGuarantee:
    return FoundGuarantee(guarantee=guarantee, found_by=None, why="nobody says")


@pytest.mark.parametrize("guarantee", ["exactly_once", None])
def test_only_files_that_were_open_are_refused_and_none_of_a_global_store(
    guarantee: ProcessingGuarantee | None,
) -> None:
    for status in ("closed", "transactional", None):
        require_committed(STORE, status, found(guarantee))
    require_committed(GLOBAL, "open", found(guarantee))
    require_committed(STORE, "open", found("at_least_once"))
    with pytest.raises(ExactlyOnceHotError):
        require_committed(STORE, "open", found(guarantee))


def test_where_the_guarantee_is_not_known_it_is_asked_for_by_name() -> None:
    with pytest.raises(ExactlyOnceHotError) as refused:
        require_committed(STORE, "open", found(None))
    assert refused.value.hint is not None
    assert "state.guarantee: at_least_once" in refused.value.hint

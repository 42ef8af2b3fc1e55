"""How a snapshot is named."""

from datetime import UTC, datetime, timedelta

import pytest

from snapstore.errors import ConfigError
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot, newest, newest_first
from snapstore.model.reference import IdPrefix, StorePartition, parse_reference

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("deadBEEF", IdPrefix("deadbeef")),
        ("orders/0_1/counts", StoreId("orders", "0_1", "counts")),
        ("orders/__left__/0_1/counts", StoreId("orders", "__left__/0_1", "counts")),
        ("orders/counts:10", StorePartition("orders", "counts", 10)),
        ("orders-counts-changelog:3", ChangelogPartition("orders-counts-changelog", 3)),
        ("orders/0_1/x%2By", StoreId("orders", "0_1", "x%2By")),
        ("orders/a b:0", StorePartition("orders", "a b", 0)),
    ],
)
def test_each_form_is_read(text: str, subject: object) -> None:
    reference = parse_reference(text)
    assert reference.subject == subject
    assert reference.offset is None
    assert reference.time is None


@pytest.mark.parametrize(
    ("text", "offset", "time"),
    [
        ("orders/counts:1@9007199254740993", 9007199254740993, None),
        ("orders/0_1/counts@2026-05-04T12:00:00Z", None, NOON),
        ("t:0@2026-05-04t14:00:00.000+02:00", None, NOON),
    ],
)
def test_an_offset_or_a_time_may_follow(
    text: str, offset: int | None, time: datetime | None
) -> None:
    reference = parse_reference(text)
    assert (reference.offset, reference.time) == (offset, time)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "counts",
        "orders/counts",
        "orders//counts",
        "/0_1/counts",
        "orders/counts:-1",
        "deadbeef@12",
        "t:0@",
        "t:0@-4",
        "t:0@2026-05-04",
        "t:0@2026-05-04T12:00:00",
        "t:0@2026-13-04T12:00:00Z",
        "@12",
        "g" * 8,
        "a" * 65,
    ],
)
def test_anything_else_is_refused_as_a_mistake_in_the_command(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_reference(text)


@pytest.mark.parametrize(
    ("task", "fits"),
    [
        *((task, True) for task in ("0_1", "7_1", "__left__/0_1", "1", "s/1")),
        *((task, False) for task in ("0_10", "0_11", "1_0", "global", "11")),
    ],
)
def test_a_partition_means_whole_tasks_only(task: str, fits: bool) -> None:
    assert StorePartition("orders", "counts", 1).matches(StoreId("orders", task, "counts")) is fits


def listed(
    offset: int | None, minutes: int = 0, *, id_: str = "a", task: str = "0_1", changelogs: int = 1
) -> ListedSnapshot:
    return ListedSnapshot(
        store=StoreId("orders", task, "counts"),
        id=id_ * 64,
        captured_at=NOON + timedelta(minutes=minutes),
        offset_sum=offset,
        changelogs=changelogs,
    )


def test_the_newest_is_the_one_that_holds_most_whatever_the_clocks_said_g65_g100() -> None:
    before, after = listed(100), listed(200, -10)
    assert newest([before, after]) == after
    assert newest_first([before, after]) == [after, before]


def test_at_one_offset_the_later_capture_is_the_newest() -> None:
    assert newest([listed(100, 5), listed(100, 9, id_="b"), listed(100, 7)]) == listed(
        100, 9, id_="b"
    )


def test_without_a_changelog_only_the_time_is_left() -> None:
    assert newest([listed(None, 1, changelogs=0), listed(None, 2, changelogs=0)]) == listed(
        None, 2, changelogs=0
    )
    assert newest([]) is None


def test_tasks_are_listed_in_the_order_of_their_numbers_g14() -> None:
    tasks = ["0_2", "0_10", "0_1", "10_0", "1_0"]
    ordered = newest_first([listed(1, task=task) for task in tasks])
    assert [item.store.task for item in ordered] == ["0_1", "0_2", "0_10", "1_0", "10_0"]


def test_a_sum_of_several_offsets_is_never_shown_as_one() -> None:
    assert listed(300, changelogs=3).applied_offset is None
    assert listed(300).applied_offset == 300

"""The offset of a store is the least of its databases, or unknown."""

import pytest

from snapstore.model.offsets import store_offset

UNKNOWN_PLACEHOLDER = -4


@pytest.mark.parametrize(
    ("why", "databases", "applied", "greatest", "unknown"),
    [
        ("one database says it all", {"a": 7}, 7, 7, ()),
        ("the slowest segment decides", {"a": 16532, "b": 13925}, 13925, 16532, ()),
        ("offset 0 is an offset", {"a": 0, "b": 5}, 0, 5, ()),
        ("a silent segment makes it unknown", {"a": 9, "b": None}, None, 9, ("b",)),
        ("a placeholder is no number", {"a": 9, "b": UNKNOWN_PLACEHOLDER}, None, 9, ("b",)),
        ("all silent", {"b": None, "a": None}, None, None, ("a", "b")),
        ("no database at all", {}, None, None, ()),
        ("offsets beyond 32 bits and beyond floats", {"a": 2**53 + 1}, 2**53 + 1, 2**53 + 1, ()),
    ],
)
def test_the_least_offset_counts_and_no_silent_database_is_left_out(
    why: str,
    databases: dict[str, int | None],
    applied: int | None,
    greatest: int | None,
    unknown: tuple[str, ...],
) -> None:
    offset = store_offset(databases)
    assert (offset.applied_offset, offset.greatest, offset.unknown) == (applied, greatest, unknown)


@pytest.mark.parametrize(
    ("databases", "uneven"),
    [
        ({"a": 5, "b": 5}, False),
        ({"a": 5, "b": 6}, True),
        ({"a": 5, "b": None}, True),
        ({"a": None}, False),
    ],
)
def test_a_store_is_uneven_when_its_greatest_offset_is_not_true_of_all(
    databases: dict[str, int | None], uneven: bool
) -> None:
    assert store_offset(databases).uneven is uneven

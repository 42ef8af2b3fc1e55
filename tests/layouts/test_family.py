"""The family `offsets` is decoded strictly."""

import pytest

from snapstore.errors import SourceDamagedError
from snapstore.layouts.kafka_streams.family import offset_entry, read_family
from snapstore.model.identity import ChangelogPartition


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def test_keys_are_split_at_the_last_hyphen() -> None:
    content = read_family({b"app-my-store-2-changelog-17": long(5)}, "rocksdb/a")
    assert content.offsets == {ChangelogPartition("app-my-store-2-changelog", 17): 5}


def test_the_placeholder_is_no_offset() -> None:
    content = read_family({b"t-0": long(-4), b"u-0": long(2**53 + 1)}, "rocksdb/a")
    assert content.offsets == {
        ChangelogPartition("t", 0): None,
        ChangelogPartition("u", 0): 2**53 + 1,
    }


@pytest.mark.parametrize(("number", "status"), [(0, "closed"), (1, "open")])
def test_the_status_is_read_and_is_no_offset(number: int, status: str) -> None:
    content = read_family({b"status": long(number), b"position": b"\0\0\0\0\0\0"}, "rocksdb/a")
    assert (content.status, content.offsets) == (status, {})


def test_a_store_without_status_has_none() -> None:
    assert read_family({}, "rocksdb/a").status is None


@pytest.mark.parametrize(
    ("why", "entries"),
    [
        ("too short", {b"t-0": b"\0\0\0\5"}),
        ("too long", {b"t-0": b"\0" * 9}),
        ("a negative number that means nothing", {b"t-0": long(-1)}),
        ("a status that means nothing", {b"status": long(2)}),
        ("a status of another size", {b"status": b"1"}),
    ],
)
def test_a_value_that_means_nothing_is_damage(why: str, entries: dict[bytes, bytes]) -> None:
    with pytest.raises(SourceDamagedError, match="rocksdb/a"):
        read_family(entries, "rocksdb/a")


def test_keys_of_other_forms_are_left_out() -> None:
    assert read_family({b"later": b"?", b"-1": b"?", b"t-x": b"?"}, "rocksdb/a").offsets == {}


def test_an_offset_is_noted_as_kafka_streams_does() -> None:
    assert offset_entry(ChangelogPartition("app-a-changelog", 3), 2785) == (
        b"app-a-changelog-3",
        b"\0\0\0\0\0\0\x0a\xe1",
    )

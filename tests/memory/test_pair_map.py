"""A map that is read as of one moment while it is written on."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.memory.pair_map import PairMap
from tests.memory.conftest import CHANGELOG

writes = st.lists(
    st.tuples(st.integers(0, 40).map(lambda n: b"%02d" % n), st.none() | st.binary(max_size=3)),
    max_size=60,
)


def fold(
    content: dict[bytes, bytes], changes: list[tuple[bytes, bytes | None]]
) -> dict[bytes, bytes]:
    after = dict(content)
    for key, value in changes:
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return after


@given(writes, writes, writes)
def test_a_frozen_map_is_what_it_was_however_it_is_written_on(
    first: list[tuple[bytes, bytes | None]],
    second: list[tuple[bytes, bytes | None]],
    third: list[tuple[bytes, bytes | None]],
) -> None:
    pairs = PairMap()
    for change in first:
        pairs.write(*change)
    pairs.freeze()
    pairs.thaw(saved=True)
    for change in second:
        pairs.write(*change)
    frozen = pairs.freeze()
    for change in third:
        pairs.write(*change)

    expected = fold(fold({}, first), second)
    assert dict(frozen.everything()) == expected
    assert list(frozen.changed()) == sorted({key: expected.get(key) for key, _ in second}.items())
    assert dict(pairs.range(None, None)) == fold(expected, third)


def test_more_pairs_than_a_group_holds_come_in_order_while_all_of_them_are_changed() -> None:
    pairs = PairMap((b"%05d" % n, b"old") for n in range(3000))
    frozen = pairs.freeze()
    reading = frozen.everything()
    seen = [next(reading)]
    for n in range(3000):
        if n % 3:
            pairs.write(b"%05d" % n, None)
            pairs.write(b"%05d+" % n, b"new")
    seen += reading
    assert seen == [(b"%05d" % n, b"old") for n in range(3000)]


@given(writes, writes)
def test_a_map_that_is_rolled_back_is_what_it_was(
    first: list[tuple[bytes, bytes | None]], second: list[tuple[bytes, bytes | None]]
) -> None:
    pairs = PairMap()
    for change in first:
        pairs.write(*change)
    pairs.note(CHANGELOG, 5)
    pairs.freeze()
    for offset, (key, value) in enumerate(second, start=6):
        pairs.apply(CHANGELOG, offset, key, value)
    pairs.roll_back()
    assert dict(pairs.range(None, None)) == fold({}, first)
    assert pairs.positions() == {CHANGELOG: 5}


def test_what_changed_is_not_forgotten_by_a_save_that_failed() -> None:
    pairs = PairMap([(b"a", b"1"), (b"b", b"2")], saved=True)
    pairs.write(b"a", b"3")
    pairs.freeze()
    pairs.write(b"b", b"4")
    pairs.thaw(saved=False)
    assert list(pairs.freeze().changed()) == [(b"a", b"3"), (b"b", b"4")]


def test_a_range_begins_at_its_start_and_ends_before_its_stop() -> None:
    pairs = PairMap((b"%04d" % n, b"") for n in range(1000))
    assert [key for key, _ in pairs.range(b"0100", b"0900")] == [
        b"%04d" % n for n in range(100, 900)
    ]
    assert list(pairs.range(b"9", None)) == list(pairs.range(None, b"0000")) == []


def test_an_offset_moves_with_its_record_and_never_back() -> None:
    pairs = PairMap()
    assert pairs.apply(CHANGELOG, 7, b"k", b"v")
    assert not pairs.apply(CHANGELOG, 7, b"k", None)
    assert not pairs.apply(CHANGELOG, 3, b"k", None)
    assert (pairs.get(b"k"), pairs.positions()) == (b"v", {CHANGELOG: 7})
    with pytest.raises(ValueError, match="cannot go to 6"):
        pairs.note(CHANGELOG, 6)


def test_several_threads_lose_nothing() -> None:
    pairs = PairMap()

    def write(part: int) -> None:
        for n in range(2000):
            pairs.write(b"%d-%d" % (part, n), b"v")

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    frozen = pairs.freeze()
    at_once = len(list(frozen.everything()))
    for thread in threads:
        thread.join()
    assert at_once == frozen.size
    assert len(list(pairs.range(None, None))) == len(pairs) == 8000

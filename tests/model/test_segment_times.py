"""Rows in a segment whose name does not cover their time are proved, and nothing else is."""

import pytest

from snapstore.model.segment_times import misplaced_segment

DAY = 86_400_000
Keys = dict[str, list[bytes]]


def window(time: int, key: bytes = b"k") -> bytes:
    return key + time.to_bytes(8, "big") + bytes(4)


def session(end: int, key: bytes = b"k") -> bytes:
    return key + end.to_bytes(8, "big") + (end - 500).to_bytes(8, "big")


def segments(*keys: bytes) -> Keys:
    """A segment for each of the days from 20,000 on."""
    return {f"s/s.{(20_000 + day) * DAY}": [key] for day, key in enumerate(keys)}


def at(day: float) -> int:
    return round((20_000 + day) * DAY)


@pytest.mark.parametrize("form", [window, session])
def test_h56_exchanged_segments_are_told_by_a_key_of_each(form: type) -> None:
    keys = segments(form(at(1.5)), form(at(0.5)), form(at(2.1)))
    first, second, _ = keys
    assert misplaced_segment("s", keys) == (first, second)


@pytest.mark.parametrize(
    "keys",
    [
        segments(window(at(0)), window(at(1.9)), window(at(2.5))),
        segments(session(at(0.7)), session(at(1.1))),
        segments(window(at(0.5))),
        segments(b"", b"k", window(at(0.1))),
        segments(b"no time in it at all", b"nor in this one, at all"),
        # A way to write keys that is not known: the time comes first.
        segments(*(at(day + 0.5).to_bytes(8, "big") + b"some longer key" for day in (1, 0))),
        {},
    ],
    ids=["windows", "sessions", "one segment", "short keys", "no times", "time first", "none"],
)
def test_h56_nothing_is_told_where_nothing_is_proved(keys: Keys) -> None:
    assert misplaced_segment("s", keys) is None

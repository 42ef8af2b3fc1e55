"""Sizes and durations: what is read, what is refused, and how they are shown."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.model.units import (
    format_duration,
    format_size,
    parse_duration,
    parse_size,
    spell_duration,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000", 1000),
        ("12 B", 12),
        ("64MiB", 64 << 20),
        ("64 mib", 64 << 20),
        ("1.5GB", 1_500_000_000),
        ("0.5KiB", 512),
        ("2TiB", 2 << 40),
        ("10MiB/s", 10 << 20),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "64M", "64K", "-1", "1e3", "MiB", "1 2", "0.3B", "1KiBB", "٣"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|whole number"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("500ms", timedelta(milliseconds=500)),
        ("0s", timedelta(0)),
        ("1.5h", timedelta(minutes=90)),
    ],
)
def test_durations_are_read(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "90", "soon", "1 h", "h", "-1d", "1y", "9" * 20 + "d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_duration_is_spelled_so_that_it_can_be_read_back(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(spell_duration(duration)) == pytest.approx(
        duration, abs=timedelta(milliseconds=1)
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (102_400, "100 KiB"),
        (1_048_575, "1.0 MiB"),
        (1_500_000, "1.4 MiB"),
        (250 << 30, "250 GiB"),
        (5 << 50, "5.0 PiB"),
        (5000 << 50, "5000 PiB"),
    ],
)
def test_sizes_are_shown_short(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (125, "2 min 05 s"),
        (3600, "1 h 00 min"),
        (11_400, "3 h 10 min"),
        (172_800, "2 d 00 h"),
        (439_200, "5 d 02 h"),
    ],
)
def test_durations_are_shown_in_their_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text

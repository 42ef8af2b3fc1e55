"""The times that servers send."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.utils import parse_timestamp

from snapstore.storages.s3.times import parse_time

NOON = datetime(2026, 11, 29, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "told",
    [
        "Sun, 29 Nov 2026 12:00:01 GMT",
        "2026-11-29T12:00:01Z",
        "2026-11-29T12:00:01.000Z",
        "2026-11-29T13:00:01+01:00",
        1795953601,
        "1795953601",
    ],
)
def test_each_way_to_write_a_time_is_understood_as_botocore_does(told: Any) -> None:
    assert parse_time(told) == parse_timestamp(told) == NOON


def test_a_time_without_a_zone_is_left_to_botocore() -> None:
    assert parse_time("2026-11-29T12:00:01") == parse_timestamp("2026-11-29T12:00:01")


def test_a_fraction_of_a_second_is_kept() -> None:
    east = timezone(timedelta(hours=2))
    assert parse_time("2026-11-29T14:00:01.250+02:00") == NOON.astimezone(east) + timedelta(
        milliseconds=250
    )


def test_what_is_no_time_is_an_error() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        parse_time("yesterday")

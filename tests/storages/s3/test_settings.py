"""Options, URLs and the plan of parts."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from snapstore.errors import ConfigError, StorageError
from snapstore.storages.s3.options import GIB, MIB, S3Location, S3Options, parse_url
from snapstore.storages.s3.parts import Part, plan_parts


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("s3://bkt", ""),
        ("s3://bkt/", ""),
        ("s3://bkt/p", "p/"),
        ("s3://bkt/p/", "p/"),
        ("S3://bkt/p/q", "p/q/"),
        ("s3://bkt/team a+b/100%/c#d?e", "team a+b/100%/c#d?e/"),
    ],
)
def test_a_url_names_one_place_with_or_without_a_final_slash_g87(url: str, prefix: str) -> None:
    assert parse_url(url) == S3Location("bkt", prefix)
    assert parse_url(parse_url(url).url) == parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bkt//p",
        "s3://bkt//",
        "s3://bkt/p//q",
        "s3://bkt/p//",
        "s3://bkt/../q",
        "s3://bkt/p/.",
        "s3://bkt/a\x08b",
        "s3://",
        "s3:///p",
        "s3://a",
        "s3://key:secret@bkt/p",
        "http://bkt/p",
        "bkt/p",
    ],
)
def test_a_url_that_can_be_read_in_two_ways_is_refused_g87(url: str) -> None:
    with pytest.raises(ConfigError):
        parse_url(url)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("multipart_threshold", 0),
        ("multipart_threshold", 5 * GIB + 1),
        ("part_size", 5 * MIB - 1),
        ("part_size", 5 * GIB + 1),
        ("sse_kms_key_id", "key-1"),
        ("ca_bundle", "/no/such/file"),
        ("endpoint_url", "minio.local:9000"),
        ("read_timeout", timedelta(0)),
    ],
)
def test_options_that_cannot_work_are_refused_by_name(option: str, value: object) -> None:
    options = S3Options(**{option: value})  # type: ignore[arg-type]

    with pytest.raises(ConfigError, match=f"repository.options.{option}"):
        options.check()


def test_options_are_fine_as_they_come(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()

    S3Options().check()
    S3Options(ca_bundle=str(bundle), sse="aws:kms", sse_kms_key_id="k").check()


@pytest.mark.parametrize(
    ("size", "part_size", "max_parts", "planned", "count"),
    [
        pytest.param(10 * MIB, 5 * MIB, 10, 5 * MIB, 2, id="it fits"),
        pytest.param(10 * MIB + 1, 5 * MIB, 10, 5 * MIB, 3, id="the last part is small"),
        pytest.param(50 * MIB, 5 * MIB, 10, 5 * MIB, 10, id="it just fits"),
        pytest.param(50 * MIB + 1, 5 * MIB, 10, 6 * MIB, 9, id="one byte too many for ten parts"),
        pytest.param(60 * GIB, 5 * MIB, 10_000, 7 * MIB, 8778, id="60 GiB"),
        pytest.param(60 * GIB, 5 * MIB, 1_000, 62 * MIB, 991, id="60 GiB in a thousand parts"),
        pytest.param(1, 5 * MIB, 1, 5 * MIB, 1, id="one byte"),
    ],
)
def test_parts_are_made_larger_before_there_are_too_many_g71(
    size: int, part_size: int, max_parts: int, planned: int, count: int
) -> None:
    plan = plan_parts(size, part_size=part_size, max_parts=max_parts)
    parts = list(plan)

    assert plan.part_size == planned
    assert len(plan) == len(parts) == count <= max_parts
    assert parts[0] == Part(1, 0, min(planned, size))
    assert all(left.stop == right.start for left, right in pairwise(parts))
    assert parts[-1].stop == size


def test_a_file_beyond_every_limit_is_refused_before_the_first_byte_g71() -> None:
    with pytest.raises(StorageError, match="parts of at most 5 GiB") as caught:
        plan_parts(11 * 5 * GIB, part_size=5 * MIB, max_parts=10)
    assert caught.value.hint is not None
    assert "max_parts" in caught.value.hint

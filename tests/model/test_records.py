"""What a record becomes in a store of each format."""

import pytest

from snapstore.errors import NotReplayableError
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.records import (
    KeySchema,
    StoreFormat,
    format_of,
    older_families,
    segment_timestamp_ms,
    serialize_headers,
    value_converter,
)

RECORD = ChangelogRecord(7, b"k", b"v", 258, (("h", b"n4147"),))
HEADERS = bytes.fromhex("12 02 02 68 0a 6e 34 31 34 37")

VALUES: dict[StoreFormat, bytes] = {
    "plain": b"v",
    "timestamped": b"\0\0\0\0\0\0\1\2v",
    "headers": HEADERS + b"\0\0\0\0\0\0\1\2v",
    "session-headers": HEADERS + b"v",
}


@pytest.mark.parametrize("form", VALUES)
def test_a_value_is_stored_with_what_its_format_adds(form: StoreFormat) -> None:
    assert value_converter(form)(RECORD) == VALUES[form]


@pytest.mark.parametrize("form", VALUES)
def test_a_tombstone_deletes_in_every_format_and_an_empty_value_does_not(
    form: StoreFormat,
) -> None:
    convert = value_converter(form)
    assert convert(ChangelogRecord(7, b"k", None, 258, RECORD.headers)) is None
    assert convert(ChangelogRecord(7, b"k", b"", 258)) is not None


def test_headers_are_lengths_and_bytes() -> None:
    assert serialize_headers(()) == b"\0"
    assert serialize_headers((("", None),)) == bytes.fromhex("06 02 00 01")
    long = serialize_headers((("k", b"x" * 100),))
    assert long == bytes.fromhex("d201 02 02 6b c801") + b"x" * 100


FAMILIES: dict[str, tuple[StoreFormat, tuple[str, ...]]] = {
    "default": ("plain", ()),
    "default offsets": ("plain", ()),
    "default keyValueWithTimestamp": ("timestamped", ("default",)),
    "default keyValueWithTimestampAndHeaders offsets": ("headers", ("default",)),
    "default keyValueWithTimestamp keyValueWithTimestampAndHeaders offsets": (
        "headers",
        ("default", "keyValueWithTimestamp"),
    ),
    "default sessionKeyValueWithHeaders offsets": ("session-headers", ("default",)),
}


@pytest.mark.parametrize("names", FAMILIES)
def test_the_families_tell_the_format_and_where_older_entries_may_lie(names: str) -> None:
    families = frozenset(names.split())
    form, older = FAMILIES[names]
    assert format_of(families) == form
    assert older_families(form, families) == older


@pytest.mark.parametrize("names", ["default __metadata__", "keyValueWithTimestamp", "offsets"])
def test_families_of_another_engine_are_refused(names: str) -> None:
    with pytest.raises(NotReplayableError, match="no known store format"):
        format_of(frozenset(names.split()))


SCHEMAS: dict[KeySchema, bytes] = {
    "window": b"key" + (1234).to_bytes(8, "big") + (9).to_bytes(4, "big"),
    "session": b"key" + (1234).to_bytes(8, "big") + (1000).to_bytes(8, "big"),
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_time_in_a_key_chooses_the_segment(schema: KeySchema) -> None:
    key = SCHEMAS[schema]
    assert segment_timestamp_ms(schema, key) == 1234
    assert segment_timestamp_ms(schema, key[3:]) == 1234
    with pytest.raises(NotReplayableError):
        segment_timestamp_ms(schema, key[4:])

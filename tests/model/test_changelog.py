"""Fingerprints of records, and what a tail that was read shows."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.model.changelog import ChangelogRecord, TailReport, fingerprint, is_compacted, mark

_BYTES = st.none() | st.binary(max_size=4)
_RECORDS = st.builds(
    ChangelogRecord,
    offset=st.just(0),
    key=_BYTES,
    value=_BYTES,
    timestamp_ms=st.integers(min_value=-1, max_value=2),
    headers=st.lists(st.tuples(st.text(max_size=2), _BYTES), max_size=2).map(tuple),
)


@given(_RECORDS, _RECORDS)
def test_two_records_have_one_fingerprint_exactly_when_they_hold_the_same(
    one: ChangelogRecord, other: ChangelogRecord
) -> None:
    assert (fingerprint(one) == fingerprint(other)) == (one == other)


def test_where_a_record_lies_is_not_part_of_its_fingerprint_but_of_its_mark() -> None:
    here = ChangelogRecord(7, b"k", b"v", 5, (("h", None),), 3)
    there = msgspec.structs.replace(here, offset=8, leader_epoch=4)
    assert mark(here).sha256 == mark(there).sha256
    assert (mark(here).offset, mark(here).leader_epoch, mark(here).timestamp_ms) == (7, 3, 5)


def test_the_fingerprint_is_the_documented_one_and_never_changes() -> None:
    record = ChangelogRecord(0, b"k", None, 1, (("h", b"x"),))
    assert fingerprint(record) == (
        "4e3bbed902a5b16a8307ef2a27627ab46ce452420ed6ffd3586241ae5ad70e4a"
    )


def test_a_tail_is_gap_free_only_when_every_offset_held_a_record() -> None:
    assert TailReport(start=3, stop=5, records=2).gap_free
    assert TailReport(start=3, stop=3, records=0).gap_free
    assert not TailReport(start=3, stop=5, records=1).gap_free
    assert TailReport(start=3, stop=5, records=0).missing == 2


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete,compact"])
def test_compacted(policy: str) -> None:
    assert is_compacted(policy)


def test_not_compacted() -> None:
    assert not is_compacted("delete")

"""One hash for all that a store holds."""

from hypothesis import given
from hypothesis import strategies as st

from snapstore.model.digest import entries_digest

_PAIRS = st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=5)), max_size=4)


@given(_PAIRS, _PAIRS)
def test_two_lists_of_pairs_have_one_digest_exactly_when_they_are_equal(
    one: list[tuple[bytes, bytes]], other: list[tuple[bytes, bytes]]
) -> None:
    assert (entries_digest(one) == entries_digest(other)) == (one == other)


def test_the_border_between_key_and_value_counts() -> None:
    assert entries_digest([(b"ab", b"c")]) != entries_digest([(b"a", b"bc")])
    assert entries_digest([(b"a", b"b"), (b"", b"")]) != entries_digest([(b"a", b"b")])


def test_the_digest_is_the_documented_one_and_never_changes() -> None:
    assert entries_digest([(b"k", b"v")]) == (
        "3eec20b33c2aa17e94a46d84ef09cfed40dcd8126439b4ccea3514e1718b14f7"
    )

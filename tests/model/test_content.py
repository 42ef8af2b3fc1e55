"""Two lists of pairs held against each other."""

from hypothesis import given
from hypothesis import strategies as st

from snapstore.model.content import SHOWN_BYTES, Side, Unequal, difference, unequal

_PAIRS = st.dictionaries(st.binary(max_size=2), st.binary(max_size=2), max_size=8)


@given(_PAIRS, _PAIRS)
def test_exactly_the_keys_that_differ_are_found_in_order(
    one: dict[bytes, bytes], other: dict[bytes, bytes]
) -> None:
    found = list(unequal(sorted(one.items()), sorted(other.items())))
    wanted = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    assert [each.key for each in found] == wanted
    assert all(
        (each.restored, each.rebuilt) == (one.get(each.key), other.get(each.key)) for each in found
    )


def test_a_difference_says_who_has_the_key() -> None:
    assert Unequal(b"k", b"v", None).side is Side.RESTORED
    assert Unequal(b"k", None, b"v").side is Side.REBUILT
    assert Unequal(b"k", b"v", b"w").side is Side.BOTH


def test_a_long_value_is_cut_and_an_empty_one_is_no_missing_one() -> None:
    value = b"\x01" * (SHOWN_BYTES + 1)
    shown = difference("db", "default", Unequal(b"\x00k", value, b""))
    assert (shown.key, shown.kind) == ("006b", "values_differ")
    assert shown.restored == "01" * SHOWN_BYTES + f"... ({SHOWN_BYTES + 1} bytes)"
    assert shown.rebuilt == ""

"""A restored store and a rebuilt one: what must be equal, and what need not."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.model.content import ContentRules
from snapstore.operations.drill_compare import Scope, compare
from snapstore.operations.drill_report import Comparison
from tests.support.state_dirs import make_database

Families = Mapping[str, Mapping[bytes, bytes]]

RULES = ContentRules(left_out=frozenset({"offsets"}))
LATEST = b"\xff" * 8


class Copies:
    """Makes two stores of one database, or of one a segment, and compares them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._backend = RocksDBBackend()

    def compare(
        self,
        restored: Mapping[str, Families],
        rebuilt: Mapping[str, Families],
        rules: ContentRules = RULES,
        **scope: Any,
    ) -> Comparison:
        with ExitStack() as held:
            views = []
            for name, databases in (("restored", restored), ("rebuilt", rebuilt)):
                for database, families in databases.items():
                    make_database(self._folder / name / database, families)
                view = self._backend.open_view(self._folder / name, "rocksdb/s")
                views.append(held.enter_context(view))
            return compare(views[0], views[1], Scope(rules=rules, **scope))


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path)


def one(entries: Mapping[bytes, bytes], **families: Mapping[bytes, bytes]) -> dict[str, Families]:
    return {"rocksdb/s": {"default": entries, **families}}


def test_offsets_are_no_content(copies: Copies) -> None:
    found = copies.compare(
        one({b"a": b"1"}, offsets={b"t-0": b"7"}), one({b"a": b"1"}, offsets={b"t-0": b"9"})
    )
    assert (found.different_keys, found.pairs, found.not_compared) == (0, 1, ())
    (digest,) = found.families
    assert digest.family == "default"
    assert digest.restored_sha256 == digest.rebuilt_sha256


def test_every_kind_of_difference_is_told_with_its_key(copies: Copies) -> None:
    found = copies.compare(one({b"a": b"1", b"b": b"2"}), one({b"b": b"3", b"c": b"4"}))
    assert found.different_keys == 3
    assert [(each.key, each.kind) for each in found.differences] == [
        ("61", "only_restored"),
        ("62", "values_differ"),
        ("63", "only_rebuilt"),
    ]
    (digest,) = found.families
    assert digest.restored_sha256 != digest.rebuilt_sha256


def test_all_differences_are_counted_and_the_first_are_shown(copies: Copies) -> None:
    many = {f"k{number:03}".encode(): b"v" for number in range(50)}
    found = copies.compare(one({}), one(many), shown=2)
    assert found.different_keys == 50
    assert [each.key for each in found.differences] == [b"k000".hex(), b"k001".hex()]


def test_a_segment_that_only_one_has_is_a_difference(copies: Copies) -> None:
    segment = {"default": {b"k": b"v"}}
    found = copies.compare(
        {"rocksdb/s/s.0": segment, "rocksdb/s/s.60000": segment}, {"rocksdb/s/s.60000": segment}
    )
    assert [(each.database, each.kind) for each in found.differences] == [
        ("rocksdb/s/s.0", "only_restored")
    ]


def test_a_segment_without_entries_is_none(copies: Copies) -> None:
    segment = {"default": {b"k": b"v"}}
    empty: Families = {"default": {}}
    found = copies.compare(
        {"rocksdb/s/s.0": empty, "rocksdb/s/s.60000": segment}, {"rocksdb/s/s.60000": segment}
    )
    assert found.different_keys == 0


def test_pairs_whose_records_the_log_has_dropped_are_not_missed(copies: Copies) -> None:
    asked: list[set[bytes]] = []

    def still_logged(keys: Collection[bytes]) -> Collection[bytes]:
        asked.append(set(keys))
        return {b"b"}

    found = copies.compare(
        one({b"a": b"1", b"b": b"2", b"c": b"3"}),
        one({b"c": b"4", b"d": b"5"}),
        still_logged=still_logged,
    )

    assert asked == [{b"a", b"b"}]
    assert [(each.key, each.kind) for each in found.differences] == [
        ("62", "only_restored"),
        ("63", "values_differ"),
        ("64", "only_rebuilt"),
    ]
    assert found.different_keys == 3
    assert found.not_compared == (
        "1 pair of which the changelog has no record any more: its start is gone",
    )


def test_the_history_of_a_versioned_store_is_left_out_where_it_may_differ(copies: Copies) -> None:
    rules = ContentRules(left_out=frozenset({"offsets"}), latest_prefix=LATEST)
    history = b"\x00" * 7 + b"\x05k"
    restored = one({LATEST + b"k": b"new", history: b"older, applied twice"})
    rebuilt = one({LATEST + b"k": b"new", history: b"older"})
    whole = copies.compare(restored, rebuilt, rules)
    assert [each.key for each in whole.differences] == [history.hex()]


def test_the_latest_values_of_a_versioned_store_are_always_compared(copies: Copies) -> None:
    rules = ContentRules(left_out=frozenset({"offsets"}), latest_prefix=LATEST)
    history = b"\x00" * 7 + b"\x05k"
    found = copies.compare(
        one({LATEST + b"k": b"new", LATEST + b"l": b"1", history: b"twice"}),
        one({LATEST + b"k": b"new", LATEST + b"l": b"2", history: b"once"}),
        rules,
        latest_only=True,
    )
    assert [each.key for each in found.differences] == [(LATEST + b"l").hex()]
    assert found.pairs == 2
    assert found.not_compared[0].startswith("the history of the versioned store")


def test_entries_from_before_an_upgrade_of_the_format_are_not_compared(copies: Copies) -> None:
    family = "keyValueWithTimestamp"
    rules = ContentRules(left_out=frozenset({"offsets"}), older=frozenset({"default"}))
    found = copies.compare(
        one({b"old": b"1"}, **{family: {b"new": b"t2"}}),
        one({}, **{family: {b"new": b"t2", b"old": b"t1", b"more": b"t3"}}),
        rules,
    )
    assert [(each.key, each.kind) for each in found.differences] == [
        (b"more".hex(), "only_rebuilt")
    ]
    assert found.not_compared == ("1 pair from before the store's format was upgraded",)

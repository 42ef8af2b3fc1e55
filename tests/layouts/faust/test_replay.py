"""Records become what the application itself makes of them."""

from pathlib import Path

import pytest

from snapstore.errors import NotReplayableError
from snapstore.layouts.faust import FaustLayout
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.faust_records import OFFSET_KEY
from snapstore.model.store import ChangelogPosition, StoreLocation
from tests.support.python_engines import Pair, changelog, expected, unpack
from tests.support.replaying import contents, replay, state_of

FAUST_PAIRS: tuple[Pair, ...] = ("faust_clean", "faust_hot")


@pytest.mark.parametrize("pair", FAUST_PAIRS)
def test_a_copy_and_the_records_after_it_give_the_state_of_the_application(
    pair: Pair, tmp_path: Path
) -> None:
    state_dir = unpack(pair, "A", tmp_path)
    application = expected(pair, "A")[0].changelog.partition("-")[0]
    locations = FaustLayout().discover(state_dir, application).locations
    records = changelog(pair)
    before = {store.path: store for store in expected(pair, "A")}
    after = {store.path: store for store in expected(pair, "B")}
    assert len(locations) == len(before) == 6
    for location in locations:
        path = str(location.path.relative_to(state_dir.resolve()))
        assert contents(location) == before[path].contents
        partition, applied = before[path].position
        stop = after[path].applied_offset + 1
        tail = [each for each in records[partition] if applied < each.offset < stop]
        assert tail
        position = ChangelogPosition(partition, applied)
        replay(FaustLayout(), location, position, state_of(partition), tail, stop)
        assert contents(location) == after[path].contents, path


@pytest.fixture
def table(tmp_path: Path) -> StoreLocation:
    unpack("faust_clean", "A", tmp_path)
    return FaustLayout().discover(tmp_path, "any").locations[0]


def apply(table: StoreLocation, record: ChangelogRecord, policy: str = "compact") -> None:
    position = expected("faust_clean", "A")[0].position
    state = state_of(position[0], policy)
    replay(FaustLayout(), table, ChangelogPosition(*position), state, [record], record.offset + 1)


def test_what_a_table_has_already_is_not_applied_again(table: StoreLocation) -> None:
    before = contents(table)
    apply(table, ChangelogRecord(offset=0, key=b'"new"', value=b"1", timestamp_ms=0))
    assert contents(table) == before


def test_a_deletion_deletes_and_the_offset_is_noted(table: StoreLocation) -> None:
    before = contents(table)["default"]
    key = next(key for key in before if key != OFFSET_KEY)
    apply(table, ChangelogRecord(offset=1 << 40, key=key, value=None, timestamp_ms=0))
    after = contents(table)["default"]
    assert before.keys() - after.keys() == {key}
    assert after[OFFSET_KEY] == b"%d" % (1 << 40)


@pytest.mark.parametrize("key", [None, OFFSET_KEY])
def test_a_key_that_no_table_has_is_refused(table: StoreLocation, key: bytes | None) -> None:
    before = contents(table)
    with pytest.raises(NotReplayableError, match="no key that a table can have"):
        apply(table, ChangelogRecord(offset=1 << 40, key=key, value=b"1", timestamp_ms=0))
    assert contents(table) == before


def test_the_changelog_of_a_set_table_is_refused(table: StoreLocation) -> None:
    record = ChangelogRecord(offset=1 << 40, key=b'[1, "k"]', value=b"1", timestamp_ms=0)
    with pytest.raises(NotReplayableError, match="not compacted"):
        apply(table, record, policy="delete")

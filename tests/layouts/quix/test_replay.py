"""Records become what the application itself makes of them."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import NotReplayableError
from snapstore.layouts.quix import QuixLayout
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.quix_records import LOCAL_FAMILIES, OFFSET_KEY, encode_number
from snapstore.model.store import ChangelogPosition, StoreLocation
from tests.support.python_engines import Pair, changelog, expected, unpack
from tests.support.replaying import contents, replay, state_of
from tests.support.state_dirs import make_database

QUIX_PAIRS: tuple[Pair, ...] = ("quix_alos", "quix_eos_ttl")
CHANGELOG = ChangelogPartition("changelog__shop--orders--default", 1)
APPLIED = ChangelogPosition(CHANGELOG, 9)

Families = Mapping[str, Mapping[bytes, bytes]]


def comparable(families: Families) -> dict[str, Mapping[bytes, bytes]]:
    """Return what an application keeps in its changelog, which is what a rebuild brings back."""
    return {name: pairs for name, pairs in families.items() if pairs and name not in LOCAL_FAMILIES}


@pytest.mark.parametrize("pair", QUIX_PAIRS)
def test_a_hot_copy_and_the_records_after_it_give_the_state_of_the_application(
    pair: Pair, tmp_path: Path
) -> None:
    state_dir = unpack(pair, "A", tmp_path)
    locations = QuixLayout().discover(state_dir).locations
    records = changelog(pair)
    before = {store.path: store for store in expected(pair, "A")}
    after = {store.path: store for store in expected(pair, "B")}
    assert len(locations) == len(before) >= 4
    for location in locations:
        path = str(location.path.relative_to(state_dir.resolve()))
        assert contents(location) == before[path].contents
        partition, applied = before[path].position
        stop = after[path].applied_offset + 1
        tail = [each for each in records[partition] if applied < each.offset < stop]
        assert tail
        position = ChangelogPosition(partition, applied)
        replay(QuixLayout(), location, position, state_of(partition), tail, stop)
        assert comparable(contents(location)) == comparable(after[path].contents), path
        with RocksDBBackend().open_view(location.task_dir, location.root) as view:
            (noted,) = QuixLayout().positions(location, None, view, running=False)
        assert noted == ChangelogPosition(partition, stop - 1)


@pytest.mark.parametrize("pair", QUIX_PAIRS)
def test_an_empty_store_and_the_whole_changelog_give_the_state_of_the_application(
    pair: Pair, tmp_path: Path
) -> None:
    records = changelog(pair)
    for number, store in enumerate(expected(pair, "B")):
        partition, applied = store.position
        group, name, stream, task = store.path.split("/")
        location = locate(tmp_path / str(number), StoreId(group, f"{stream}/{task}", name))
        whole = [each for each in records[partition] if each.offset <= applied]
        replay(QuixLayout(), location, None, state_of(partition), whole, applied + 1)
        assert comparable(contents(location)) == comparable(store.contents), store.path


def test_every_value_that_expires_is_in_the_index_of_expiries(tmp_path: Path) -> None:
    [store, *_] = expected("quix_eos_ttl", "B")
    partition, applied = store.position
    whole = [each for each in changelog("quix_eos_ttl")[partition] if each.offset <= applied]
    location = locate(tmp_path, StoreId("qeos", "qin2/0", "default"))
    replay(QuixLayout(), location, None, state_of(partition), whole, applied + 1)
    found = contents(location)
    due = {value[:8] + key for key, value in found["default"].items() if value[:8] != b"\xff" * 8}
    assert due
    assert due <= found["__ttl_index__"].keys()
    assert found["__metadata__"][b"__ttl_enabled__"] == b"\x01"
    assert found["__metadata__"][b"__ttl_format_version__"] == encode_number(2)


def locate(folder: Path, store: StoreId) -> StoreLocation:
    return StoreLocation(
        store=store,
        layout="quix",
        backend="rocksdb",
        store_type="key-value",
        generation="quix-3",
        task_dir=folder,
        root=".",
    )


def a_store(folder: Path, families: Families) -> StoreLocation:
    """Make a store that has applied everything up to offset 9."""
    metadata = {OFFSET_KEY: encode_number(9), **families.get("__metadata__", {})}
    make_database(folder, {**families, "__metadata__": metadata})
    return locate(folder, StoreId("shop", "orders/1", "default"))


def record(offset: int, value: bytes | None = b"1", **headers: object) -> ChangelogRecord:
    """Make a record of the family ``default`` unless ``family`` says otherwise."""
    given = {"__column_family__": str(headers.pop("family", "default")).encode()}
    if "processed" in headers:
        given["__processed_tp_offsets__"] = msgspec.json.encode(headers.pop("processed"))
    if headers.pop("stamped", False):
        given["__ttl_stamped__"] = b"\x01"
    assert not headers
    return ChangelogRecord(
        offset=offset,
        key=b"k%d" % offset,
        value=value,
        timestamp_ms=0,
        headers=tuple(given.items()),
    )


def apply(location: StoreLocation, *records: ChangelogRecord, committed: int | None = 7) -> None:
    asked = []

    def offset(group: str, source: ChangelogPartition) -> int | None:
        asked.append((group, source))
        return committed

    stop = records[-1].offset + 1
    replay(QuixLayout(), location, APPLIED, state_of(CHANGELOG), records, stop, committed=offset)
    assert set(asked) <= {("shop", ChangelogPartition("orders", 1))}


def test_a_record_that_the_store_has_already_is_not_applied_again(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {b"k8": b"newer"}})
    apply(location, record(8), record(9), record(10))
    assert contents(location)["default"] == {b"k8": b"newer", b"k10": b"1"}


def test_what_comes_of_committed_source_records_is_applied(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {}})
    apply(location, record(10, processed={"orders": 6}), record(11, processed={}), committed=7)
    assert contents(location)["default"] == {b"k10": b"1", b"k11": b"1"}


@pytest.mark.parametrize("committed", [7, 0, None])
def test_what_the_application_will_process_again_is_refused(
    tmp_path: Path, committed: int | None
) -> None:
    location = a_store(tmp_path, {"default": {}})
    uncommitted = record(11, processed={"orders": 7})
    with pytest.raises(NotReplayableError, match="offset 7 of orders") as caught:
        apply(location, record(10), uncommitted, committed=committed)
    assert "--to-offset 10" in str(caught.value.hint)
    assert contents(location)["default"] == {}


def test_what_is_committed_meanwhile_is_noticed(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {}})
    answers = [5, 9]

    def growing(group: str, source: ChangelogPartition) -> int | None:
        return answers.pop(0)

    replay(
        QuixLayout(),
        location,
        APPLIED,
        state_of(CHANGELOG),
        [record(10, processed={"orders": 4}), record(11, processed={"orders": 8})],
        12,
        committed=growing,
    )
    assert contents(location)["default"] == {b"k10": b"1", b"k11": b"1"}


def test_without_knowledge_of_the_group_nothing_is_guessed(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {}})
    with pytest.raises(NotReplayableError, match="has committed are unknown"):
        replay(
            QuixLayout(),
            location,
            APPLIED,
            state_of(CHANGELOG),
            [record(10, processed={"orders": 0})],
            11,
            committed=None,
        )
    assert contents(location)["__metadata__"][OFFSET_KEY] == encode_number(9)


def test_families_that_the_store_lacks_are_made(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {b"a": b"1"}})
    apply(location, record(10, family="__values__"), record(11))
    found = contents(location)
    assert found["__values__"] == {b"k10": b"1"}
    assert found["default"] == {b"a": b"1", b"k11": b"1"}


def test_families_of_the_application_alone_are_left_alone(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"default": {}})
    apply(location, record(10, family="__metadata__"), record(11, family="__ttl_index__"))
    found = contents(location)
    assert found["__metadata__"] == {OFFSET_KEY: encode_number(11)}
    assert "__ttl_index__" not in found


@pytest.mark.parametrize(
    ("foreign", "reason"),
    [
        (ChangelogRecord(offset=10, key=b"k", value=b"v", timestamp_ms=0), "no header"),
        (msgspec.structs.replace(record(10), key=None), "no key"),
        (
            msgspec.structs.replace(
                record(10),
                headers=(("__column_family__", b"default"), ("__processed_tp_offsets__", b"{")),
            ),
            "cannot be read",
        ),
    ],
)
def test_a_record_that_quix_streams_has_not_written_is_refused(
    tmp_path: Path, foreign: ChangelogRecord, reason: str
) -> None:
    location = a_store(tmp_path, {"default": {b"a": b"1"}})
    with pytest.raises(NotReplayableError, match=reason):
        apply(location, foreign)
    assert contents(location)["default"] == {b"a": b"1"}


ENABLED = {b"__ttl_enabled__": b"\x01"}
STAMP = b"\0\0\1\x8f\0\0\0\0"


@pytest.mark.parametrize(
    "families",
    [
        {"__metadata__": {b"__ttl_backfill_in_progress__": b"\1"}},
        {"__metadata__": {b"__ttl_adopt_pending__": b"\1"}},
        {"__ttl_backfill_stamped__": {b"k": b""}},
        {"__ttl_adopt_backup__": {b"k": b""}},
        {"__metadata__": ENABLED, "__ttl_backfill_pending__": {b"k": b""}},
    ],
    ids=str,
)
def test_a_store_whose_values_are_being_rewritten_is_left_to_its_application(
    tmp_path: Path, families: Families
) -> None:
    location = a_store(tmp_path, families)
    with pytest.raises(NotReplayableError, match="being rewritten for expiry"):
        apply(location, record(10))


def test_expiry_that_is_switched_on_over_entries_is_left_to_the_application(
    tmp_path: Path,
) -> None:
    location = a_store(tmp_path, {"default": {b"a": b"1"}})
    with pytest.raises(NotReplayableError, match="switched on at offset 10"):
        apply(location, record(10, STAMP + b"1", stamped=True))


def test_expiry_that_is_switched_on_behind_entries_of_the_same_batch_is_too(
    tmp_path: Path,
) -> None:
    location = a_store(tmp_path, {"default": {}})
    with pytest.raises(NotReplayableError, match="switched on at offset 11"):
        apply(location, record(10), record(11, STAMP + b"1", stamped=True))


def test_a_value_without_expiry_in_a_store_with_it_is_left_to_the_application(
    tmp_path: Path,
) -> None:
    location = a_store(tmp_path, {"__metadata__": ENABLED})
    with pytest.raises(NotReplayableError, match="lacks the time of its expiry"):
        apply(location, record(10))


def test_a_value_too_short_for_the_time_of_its_expiry_is_refused(tmp_path: Path) -> None:
    location = a_store(tmp_path, {"__metadata__": ENABLED})
    with pytest.raises(NotReplayableError, match="3 bytes"):
        apply(location, record(10, b"abc", stamped=True))


def test_a_deletion_needs_no_expiry(tmp_path: Path) -> None:
    location = a_store(
        tmp_path, {"__metadata__": ENABLED, "default": {b"k10": STAMP + b"1", b"a": STAMP}}
    )
    apply(location, record(10, None))
    assert contents(location)["default"] == {b"a": STAMP}

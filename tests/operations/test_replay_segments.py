"""Records of window and session stores get into the segments that Kafka Streams would put them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import NotReplayableError, SourceDamagedError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from snapstore.layouts.kafka_streams.options import StoreRules
from snapstore.model.changelog import ChangelogRecord, PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition, StoreLocation
from tests.support.replaying import replay, state_of
from tests.support.state_dirs import make_database

HOUR = 3_600_000
DAY = 24 * HOUR
TOPIC = "orders-sales-changelog"
CHANGELOG = ChangelogPartition(TOPIC, 0)
TOPIC_RETENTION = msgspec.structs.replace(
    state_of(CHANGELOG, "compact,delete"), retention_ms=5 * DAY
)
"""Of a store that keeps four days, so in segments of two."""

Segments = Mapping[int, Mapping[bytes, bytes]]


def window_key(name: str, start_ms: int) -> bytes:
    return name.encode() + start_ms.to_bytes(8, "big") + bytes(4)


def session_key(name: str, end_ms: int, start_ms: int) -> bytes:
    return name.encode() + end_ms.to_bytes(8, "big") + start_ms.to_bytes(8, "big")


def record(offset: int, key: bytes, value: bytes | None) -> ChangelogRecord:
    return ChangelogRecord(offset, key, value, 0)


def make_store(
    task_dir: Path, segments: Segments, applied: Mapping[int, int | None], status: int = 0
) -> StoreLocation:
    for start, rows in segments.items():
        offset = applied[start]
        noted = {} if offset is None else {f"{TOPIC}-0".encode(): offset.to_bytes(8, "big")}
        make_database(
            task_dir / "sales" / f"sales.{start}",
            {"default": rows, "offsets": {b"status": status.to_bytes(8, "big"), **noted}},
        )
    return StoreLocation(
        store=StoreId("orders", "0_0", "sales"),
        layout="kafka-streams",
        backend="rocksdb",
        store_type="segmented",
        generation="kafka-streams-4.3",
        task_dir=task_dir,
        root="sales",
    )


def segments_of(location: StoreLocation) -> dict[int, dict[bytes, bytes]]:
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        return {
            int(name.rpartition(".")[2]): dict(view.entries(name, "default"))
            for name in view.databases
        }


def offsets_of(location: StoreLocation) -> set[int]:
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        noted = [
            view.entries(name, "offsets").get(f"{TOPIC}-0".encode()) for name in view.databases
        ]
    return {-1 if each is None else int.from_bytes(each, "big") for each in noted}


def run(
    location: StoreLocation,
    applied: int,
    records: Sequence[ChangelogRecord],
    reached: int,
    *,
    rules: StoreRules | None = None,
    state: PartitionState = TOPIC_RETENTION,
) -> None:
    layout = KafkaStreamsLayout(KafkaStreamsOptions(rules={"sales": rules} if rules else {}))
    position = ChangelogPosition(CHANGELOG, applied)
    replay(layout, location, position, state, records, reached)


def test_each_record_goes_to_its_segment_new_ones_are_made_and_expired_ones_go(
    tmp_path: Path,
) -> None:
    first, second, third, fourth = (n * 2 * DAY for n in (50, 51, 52, 53))
    old, kept = window_key("a", first + HOUR), window_key("a", second + HOUR)
    location = make_store(
        tmp_path, {first: {old: b"1"}, second: {kept: b"2"}}, {first: 9, second: 9}
    )
    late, new = window_key("b", second + 5), window_key("b", fourth + DAY)
    run(
        location,
        9,
        [
            record(10, late, b"late"),
            record(11, window_key("c", third), b"third"),
            record(12, kept, None),
            record(14, new, b"new"),
            record(15, window_key("x", first), b"too late"),
        ],
        17,
    )
    assert segments_of(location) == {
        second: {late: b"late"},
        third: {window_key("c", third): b"third"},
        fourth: {new: b"new"},
    }
    assert offsets_of(location) == {16}


def test_each_segment_goes_on_from_its_own_offset(tmp_path: Path) -> None:
    first, second = 50 * 2 * DAY, 51 * 2 * DAY
    one, two = window_key("a", first), window_key("a", second)
    location = make_store(
        tmp_path, {first: {one: b"of 20"}, second: {two: b"of 5"}}, {first: 20, second: 5}
    )
    records = [
        record(6, one, b"of 6"),
        record(7, two, b"of 7"),
        record(20, one, b"of 20"),
        record(21, two, None),
    ]
    run(location, 5, records, 22)
    assert segments_of(location) == {first: {one: b"of 20"}, second: {}}
    assert offsets_of(location) == {21}


def test_a_session_belongs_to_the_segment_of_its_end(tmp_path: Path) -> None:
    first, second = 50 * 2 * DAY, 51 * 2 * DAY
    there = session_key("a", first + 1, first)
    location = make_store(tmp_path, {first: {there: b"1"}}, {first: 0})
    across = session_key("a", second + 5, first + 7)
    run(location, 0, [record(0, there, b"1"), record(1, across, b"2")], 2)
    assert segments_of(location) == {first: {there: b"1"}, second: {across: b"2"}}


def test_new_segments_of_a_transactional_store_have_no_status_either(tmp_path: Path) -> None:
    first, second = 50 * 2 * DAY, 51 * 2 * DAY
    there = window_key("a", first)
    noted = {f"{TOPIC}-0".encode(): (3).to_bytes(8, "big")}
    location = make_store(tmp_path, {}, {})
    make_database(
        tmp_path / "sales" / f"sales.{first}", {"default": {there: b"1"}, "offsets": noted}
    )
    run(location, 3, [record(4, window_key("a", second), b"2")], 5)
    with RocksDBBackend().open_view(tmp_path, "sales") as view:
        assert all(b"status" not in view.entries(name, "offsets") for name in view.databases)
        assert len(view.databases) == 2


def times(starts: Sequence[int], step: int) -> Segments:
    """Segments at those starts, with rows all over ``step`` milliseconds of each."""
    return {
        start: {window_key("a", start + step * n // 10): b"v" for n in range(10)}
        for start in starts
    }


TWO_DAYS = [50 * 2 * DAY, 51 * 2 * DAY]
WRONG: dict[str, tuple[Segments, StoreRules | None, str]] = {
    "rows lie beyond the segments that the topic's retention says": (
        times([100 * 2 * DAY], 3 * DAY),
        None,
        "contradict",
    ),
    "segments begin where none could": (times([50 * 2 * DAY + HOUR], HOUR), None, "contradict"),
    "no row shows whether these are windows or sessions": (
        {50 * 2 * DAY: {}},
        None,
        "nothing proves",
    ),
    "more segments are there than the retention lets": (
        times([n * 2 * DAY for n in range(50, 55)], DAY),
        None,
        "keeps segments for longer",
    ),
    "the keys are of another kind than was configured": (
        times(TWO_DAYS, DAY),
        StoreRules(keys="session"),
        "contradict",
    ),
    "the configured interval does not fit": (
        times(TWO_DAYS, 2 * DAY),
        StoreRules(segment_interval_ms=DAY),
        "contradict",
    ),
    "the files are of another format than was configured": (
        times(TWO_DAYS, DAY),
        StoreRules(format="timestamped"),
        "its files are plain",
    ),
}


@pytest.mark.parametrize("row", WRONG.values(), ids=WRONG.keys())
def test_rules_that_are_not_proved_are_refused_before_anything_is_written(
    tmp_path: Path, row: tuple[Segments, StoreRules | None, str]
) -> None:
    segments, rules, reason = row
    location = make_store(tmp_path, segments, dict.fromkeys(segments, 5))
    before = segments_of(location)
    with pytest.raises(NotReplayableError, match=reason):
        run(location, 5, [record(6, window_key("a", TWO_DAYS[0]), b"v")], 7, rules=rules)
    assert segments_of(location) == before


def test_a_topic_without_a_retention_proves_none(tmp_path: Path) -> None:
    segments = times(TWO_DAYS, DAY)
    location = make_store(tmp_path, segments, dict.fromkeys(segments, 5))
    state = state_of(CHANGELOG, "compact")
    with pytest.raises(NotReplayableError, match="does not tell the store's retention"):
        run(location, 5, [], 6, state=state)
    run(location, 5, [], 6, state=state, rules=StoreRules(retention_ms=4 * DAY))
    assert offsets_of(location) == {5}


def test_h63_a_segment_with_a_name_of_an_older_version_gets_its_records(tmp_path: Path) -> None:
    first, second = 50 * 2 * DAY, 51 * 2 * DAY
    old, new = window_key("a", first + HOUR), window_key("b", second + HOUR)
    location = make_store(
        tmp_path, {first: {old: b"1"}, second: {new: b"2"}}, {first: 9, second: 9}
    )
    folder = location.path / f"sales.{first}"
    folder.rename(folder.with_name(f"sales:{first}"))
    late = window_key("c", first + 5)
    run(location, 9, [record(10, late, b"late")], 11)
    assert sorted(path.name for path in location.path.iterdir()) == [
        f"sales.{second}",
        f"sales:{first}",
    ]
    with RocksDBBackend().open_view(location.task_dir, location.root) as view:
        found = dict(view.entries(f"sales/sales:{first}", "default"))
    assert found == {old: b"1", late: b"late"}
    assert offsets_of(location) == {10}


def test_h56_nothing_is_replayed_onto_segments_that_were_exchanged(tmp_path: Path) -> None:
    """So a drill calls the store damaged, where it was skipped since nothing proved its rules."""
    first, second = 50 * 2 * DAY, 51 * 2 * DAY
    rows = {first: {window_key("b", second + 5): b"2"}, second: {window_key("a", first + 5): b"1"}}
    location = make_store(tmp_path, rows, {first: 9, second: 9})
    with pytest.raises(SourceDamagedError, match="two segments were exchanged"):
        run(location, 9, [record(10, window_key("c", second), b"c")], 11)

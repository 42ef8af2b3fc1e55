"""Records of a key-value store get into the family of its format, and out of the older one."""

from pathlib import Path

import msgspec
import pytest

from snapstore.errors import NotReplayableError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, KafkaStreamsOptions
from snapstore.layouts.kafka_streams.options import StoreRules
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.store import ChangelogPosition, StoreLocation
from tests.support.replaying import contents, replay, state_of
from tests.support.state_dirs import make_database, offsets_family

TOPIC = "orders-counts-changelog"
CHANGELOG = ChangelogPartition(TOPIC, 0)
TIMED = "keyValueWithTimestamp"
AT = (5).to_bytes(8, "big")


def locate(task_dir: Path, store_type: str = "key-value", task: str = "0_0") -> StoreLocation:
    return StoreLocation(
        store=StoreId("orders", task, "counts"),
        layout="kafka-streams",
        backend="rocksdb",
        store_type=store_type,
        generation="kafka-streams-4.3",
        task_dir=task_dir,
        root="rocksdb/counts",
    )


def run(
    location: StoreLocation, *records: ChangelogRecord, rules: StoreRules | None = None
) -> None:
    layout = KafkaStreamsLayout(KafkaStreamsOptions(rules={"counts": rules} if rules else {}))
    replay(
        layout,
        location,
        ChangelogPosition(CHANGELOG, 9),
        state_of(CHANGELOG),
        records,
        records[-1].offset + 1,
    )


def test_an_entry_of_an_older_format_moves_when_its_key_is_written(tmp_path: Path) -> None:
    location = locate(tmp_path)
    noted = offsets_family({f"{TOPIC}-0": 9}, status=0)["offsets"]
    old = {b"moved": b"1", b"gone": b"2", b"stays": b"3"}
    make_database(location.path, {"default": old, TIMED: {}, "offsets": noted})
    run(
        location,
        ChangelogRecord(10, b"moved", b"new", 5),
        ChangelogRecord(11, b"gone", None, 5),
        ChangelogRecord(12, None, b"no key", 5),
    )
    held = contents(location)
    assert held["default"] == {b"stays": b"3"}
    assert held[TIMED] == {b"moved": AT + b"new"}
    assert held["offsets"][f"{TOPIC}-0".encode()] == (12).to_bytes(8, "big")
    assert held["offsets"][b"status"] == bytes(8)


@pytest.mark.parametrize("keys", [b"\xff" * 8 + b"key", b"\xff" * 9])
def test_a_store_that_looks_versioned_is_no_plain_one_unless_somebody_says_so(
    tmp_path: Path, keys: bytes
) -> None:
    location = locate(tmp_path)
    noted = offsets_family({f"{TOPIC}-0": 9}, status=0)["offsets"]
    make_database(location.path, {"default": {keys: AT + b"v"}, "offsets": noted})
    with pytest.raises(NotReplayableError, match="may be versioned"):
        run(location, ChangelogRecord(10, b"k", b"v", 5))
    run(location, ChangelogRecord(10, b"k", b"v", 5), rules=StoreRules(format="plain"))
    assert contents(location)["default"] == {keys: AT + b"v", b"k": b"v"}


def test_what_only_the_application_knows_is_not_replayed(tmp_path: Path) -> None:
    record = ChangelogRecord(10, b"k", b"v", 5)
    with pytest.raises(NotReplayableError, match="nobody but the application"):
        run(locate(tmp_path, "custom"), record)
    with pytest.raises(NotReplayableError, match="code of its own"):
        run(locate(tmp_path, task="global"), record)
    with pytest.raises(NotReplayableError, match="no files that show it"):
        run(locate(tmp_path), record)
    location = locate(tmp_path)
    make_database(location.path, {"default": {}, "offsets": {}, "something": {}})
    with pytest.raises(NotReplayableError, match="no known store format"):
        run(location, record)


def test_a_topic_that_delays_compaction_makes_the_format_doubtful(tmp_path: Path) -> None:
    location = locate(tmp_path)
    noted = offsets_family({f"{TOPIC}-0": 9}, status=0)["offsets"]
    make_database(location.path, {"default": {b"a key of some length": b"v"}, "offsets": noted})
    state = msgspec.structs.replace(state_of(CHANGELOG), min_compaction_lag_ms=60_000)
    with pytest.raises(NotReplayableError, match="keeps records from compaction"):
        replay(KafkaStreamsLayout(), location, ChangelogPosition(CHANGELOG, 9), state, (), 10)

"""Every name that Kafka Streams would open as a segment is one, and no other."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import CaptureError
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.layouts.kafka_streams.strangers import find_strangers
from snapstore.model.segment_names import segment_start
from tests.support.streams_store import APPLICATION, Pairs, make_window

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("win.86400000", DAY_MS),
        ("win.0", 0),
        ("win:86400000", DAY_MS),
        ("win-197001020000", DAY_MS),
        ("win-202402301215", int(datetime(2024, 3, 1, 12, 15, tzinfo=UTC).timestamp() * 1000)),
        ("win-202413010000", int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)),
        # What follows the name's length counts, not the name.
        ("old:86400000", DAY_MS),
    ],
)
def test_h63_what_kafka_streams_opens_as_a_segment_is_one(name: str, start: int) -> None:
    assert segment_start("win", name) == start


@pytest.mark.parametrize(
    "name",
    [
        *("win", "wi", "win.", "win.x", "win.-5", "win-x", "win-2024"),
        *("win.086400000", "win_86400000", "win.86400000.bak", "old.86400000", "window.86400000"),
    ],
)
def test_h63_what_it_does_not_open_is_none(name: str) -> None:
    assert segment_start("win", name) is None


@pytest.mark.parametrize(
    ("name", "reason", "starts_empty"),
    [
        ("win.86400000.bak", "it is no segment", False),
        ("win_86400000", "it is no segment: the application opens win.86400000 for it", True),
        ("win_99", "it is no segment: the application makes win.99 for it", True),
    ],
)
def test_h63_a_folder_that_holds_rows_and_is_no_segment_is_told(
    tmp_path: Path, name: str, reason: str, starts_empty: bool
) -> None:
    make_window(tmp_path, "0_0", "win", {DAY_MS: Pairs(pairs={b"k": b"v"}, applied_offset=9)})
    task = tmp_path / APPLICATION / "0_0"
    (task / "win" / name).mkdir()
    (task / "win" / name / "CURRENT").write_text("x")
    (damage,) = find_strangers(task, "win", "win")
    assert (damage.file, damage.reason) == (f"win/{name}", reason)
    assert (damage.stranger, damage.holds_rows) == (True, True)
    assert damage.starts_empty is starts_empty


@pytest.mark.parametrize("other", ["win.86400000.bak", "win:86400000", "win-197001020000"])
def test_h63_no_snapshot_is_taken_of_what_the_application_could_not_open(
    tmp_path: Path, other: str
) -> None:
    made = make_window(
        tmp_path, "0_0", "win", {DAY_MS: Pairs(pairs={b"k": b"v"}, applied_offset=9)}
    )
    copy = made[DAY_MS].with_name(other)
    copy.mkdir()
    for file in made[DAY_MS].iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    layout = KafkaStreamsLayout()
    (location,) = layout.discover(tmp_path).locations
    with (
        RocksDBBackend().capture(location) as capture,
        pytest.raises(CaptureError, match=r"no segment of|is the same segment as"),
    ):
        layout.positions(location, None, capture.view, running=False)

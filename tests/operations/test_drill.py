"""Which stores a drill takes, what errors say, and what is remembered of its speed."""

from datetime import timedelta
from pathlib import Path

import pytest

from snapstore.errors import (
    BlobCorruptError,
    CaptureError,
    ConfigError,
    KafkaError,
    NotReplayableError,
    SnapshotNotFoundError,
    SnapstoreError,
    SourceDamagedError,
    StoreUnsupportedError,
    TopicRecreatedError,
)
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.operations.drill import draw, outcome_of
from snapstore.operations.drill_rates import measured, rates_of, read_rates, write_rates
from snapstore.operations.drill_report import DrilledPartition, DrilledStore, Outcome, Timing
from snapstore.operations.restore_choice import Request
from tests.support.repository import NOON


def request(task: str, store: str) -> Request:
    listed = ListedSnapshot(
        store=StoreId("app", task, store), id="0", captured_at=NOON, offset_sum=1, changelogs=1
    )
    return Request(candidates=(listed,), latest=True)


REQUESTS = [request(f"0_{number}", store) for number in range(12) for store in ("a", "b")]


def drawn(sample: int | None, seed: int = 0) -> list[StoreId]:
    return [each.candidates[0].store for each in draw(REQUESTS, sample, seed)]


def test_without_a_sample_all_stores_are_drilled_in_natural_order() -> None:
    assert [store.task for store in drawn(None)][18:22] == ["0_9", "0_9", "0_10", "0_10"]
    assert drawn(100) == drawn(None)


def test_a_seed_draws_the_same_sample_whatever_the_order() -> None:
    assert drawn(5, 7) == drawn(5, 7)
    assert draw(REQUESTS[::-1], 5, 7) == draw(REQUESTS, 5, 7)
    assert len({tuple(map(str, drawn(5, seed))) for seed in range(10)}) > 5
    assert len(set(drawn(5))) == 5


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BlobCorruptError("x"), "damaged"),
        (SourceDamagedError("x"), "damaged"),
        (NotReplayableError("x"), "skipped"),
        (StoreUnsupportedError("x"), "skipped"),
        (TopicRecreatedError("x"), "refused"),
        (KafkaError("x"), "unavailable"),
        (CaptureError("x"), "unavailable"),
        (SnapshotNotFoundError("x"), "unavailable"),
    ],
)
def test_what_an_error_says_of_a_snapshot(error: SnapstoreError, outcome: Outcome) -> None:
    assert outcome_of(error) == outcome


def test_a_wrong_configuration_says_nothing_of_a_snapshot() -> None:
    with pytest.raises(ConfigError):
        outcome_of(ConfigError("x"))


def timed(restored_bytes: int, rebuilt_records: int) -> DrilledStore:
    return DrilledStore(
        store=StoreId("app", "0_0", "a"),
        outcome="equal",
        partitions=(
            DrilledPartition(
                changelog="t:0",
                applied_offset=5,
                end_offset=10,
                replayed_records=4,
                rebuild_start=0,
                rebuilt_records=rebuilt_records,
            ),
        ),
        timing=Timing(
            restored_bytes=restored_bytes,
            restore_seconds=2.0,
            replay_seconds=1.0,
            rebuild_seconds=4.0,
        ),
    )


def test_rates_are_measured_over_all_stores() -> None:
    skipped = DrilledStore(store=StoreId("app", "0_1", "a"), outcome="skipped")
    rates = measured([timed(4 << 20, 60_000), timed(4 << 20, 20_000), skipped], NOON)
    assert rates.download_bytes_per_second == (8 << 20) / 4
    assert rates.replay_records_per_second == 10_000


def test_too_little_moved_measures_nothing_and_keeps_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "rates.json"
    assert read_rates(path) is None
    write_rates(path, measured([timed(4 << 20, 60_000)], NOON))
    write_rates(path, measured([timed(100, 10)], NOON + timedelta(days=1)))
    kept = read_rates(path)
    assert kept is not None
    assert kept.replay_records_per_second == 15_000
    assert kept.download_bytes_per_second == 2 << 20


def test_rates_say_where_they_are_from() -> None:
    known = measured([timed(4 << 20, 60_000)], NOON)

    def origin(download: float | None, replay: float | None, known_too: bool = True) -> str | None:
        rates = rates_of(
            known if known_too else None,
            download_bytes_per_second=download,
            replay_records_per_second=replay,
        )
        return None if rates is None else rates.origin

    assert origin(None, None) == "measured by a drill on this host at 2026-05-04 12:00:00Z"
    assert origin(1.0, None) == (
        "download as given, measured by a drill on this host at 2026-05-04 12:00:00Z"
    )
    assert origin(1.0, 1.0) == "download and replay as given"
    assert origin(1.0, None, known_too=False) is None


def test_an_unreadable_note_of_rates_is_none(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text("{")
    assert read_rates(tmp_path / "rates.json") is None

"""`snapstore status` as an operator and a monitor see it."""

import shutil
from pathlib import Path

import msgspec
import pytest

from snapstore.cli.commands.status import exit_code_of
from snapstore.cli.freshness import report_lines
from snapstore.model.freshness import (
    FreshnessReport,
    Standing,
    StoreFreshness,
    Thresholds,
    crossed,
)
from snapstore.model.identity import StoreId
from tests.cli.conftest import Cli


def test_ages_are_told_without_kafka_and_what_is_not_known(filled: str, cli: Cli) -> None:
    answer = cli("status", "-r", filled)
    assert answer.code == 0
    assert "unchecked" in answer.out
    assert "Kafka is not configured" in answer.out
    assert answer.out.splitlines()[-1].startswith("1 store: 1 unchecked")

    document = cli("status", "-r", filled, "--json").document
    (item,) = document["items"]
    assert (document["kind"], document["standing"]) == ("status", "unchecked")
    assert item["age"] >= 0
    assert item["lag_records"] is item["lag_bytes"] is item["usable_until"] is None
    assert item["partitions"][0]["applied_offset"] > 0


def test_a_snapshot_that_is_too_old_is_exit_code_3(filled: str, cli: Cli) -> None:
    assert cli("status", "-r", filled, "--max-age", "1h").code == 0
    answer = cli("status", "-r", filled, "--max-age", "0s", "--json")
    assert (answer.code, answer.document["exit_code"]) == (3, 3)
    assert "more than" in answer.document["items"][0]["over"][0]


def test_stores_on_disk_without_a_snapshot_are_named(
    filled: str, state_dir: Path, cli: Cli
) -> None:
    answer = cli("status", "-r", filled, "--state-dir", state_dir)
    assert answer.code == 3
    assert "NO SNAPSHOT" in answer.out
    assert "there is no snapshot of it" in answer.out


def test_nothing_to_tell_of_is_not_found(url: str, filled: str, cli: Cli) -> None:
    assert url == filled
    answer = cli("status", "-r", filled, "--application", "other", "--json")
    assert (answer.code, answer.error["code"]) == (10, "snapshot_not_found")


def test_a_state_directory_of_another_host_is_noted(filled: str, cli: Cli, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    answer = cli("status", "-r", filled, env={"SNAPSTORE_STATE_DIR": str(elsewhere)})
    assert answer.code == 0
    assert "is not on this host" in answer.err
    assert cli("status", "-r", filled, "--state-dir", elsewhere).code == 10


def test_a_lag_cannot_be_asked_for_without_kafka(filled: str, cli: Cli) -> None:
    for option in (("--max-lag", "5"), ("--safe-trim",)):
        answer = cli("status", "-r", filled, *option)
        assert answer.code == 2
        assert "kafka.bootstrap" in answer.err


def test_a_damaged_snapshot_leaves_none_to_use(filled: str, cli: Cli) -> None:
    shutil.rmtree(Path(filled) / "blobs")
    answer = cli("status", "-r", filled)
    assert answer.code == 3
    assert "UNUSABLE" in answer.out
    assert "was passed over: blob" in answer.out


@pytest.mark.parametrize(
    ("standings", "code"),
    [
        (("usable", "older"), 0),
        (("usable", "unknown"), 12),
        (("unknown", "none"), 3),
        (("unusable",), 3),
    ],
)
def test_could_not_find_out_and_no_snapshot_are_different_exit_codes(
    standings: tuple[Standing, ...], code: int
) -> None:
    stores = tuple(
        StoreFreshness(
            store=StoreId("app", "0_0", each),
            standing=each,
            snapshots=1,
            over=crossed(each, None, None, Thresholds()),
        )
        for each in standings
    )
    assert exit_code_of(FreshnessReport(stores=stores, rates=None)) == code


@pytest.mark.parametrize("given", [(), ("--download-rate", "1MiB")])
def test_restore_times_are_not_guessed(given: tuple[str, ...], filled: str, cli: Cli) -> None:
    assert "restore times are not estimated" in cli("status", "-r", filled, *given).out


def test_given_rates_are_said_to_be_given(filled: str, cli: Cli) -> None:
    rates = ("--download-rate", "1MiB", "--replay-rate", "1000")
    answer = cli("status", "-r", filled, *rates)
    assert "1.0 MiB/s and 1,000 records/s, download and replay as given" in answer.out


def test_what_holds_for_many_stores_is_told_of_a_few_h42() -> None:
    stores = tuple(
        StoreFreshness(
            store=StoreId("orders", f"0_{number}", "counts"),
            standing="unusable",
            snapshots=1,
            reason=f"the changelog begins at {number + 7}",
            advice=("take a snapshot every hour",),
        )
        for number in range(500)
    )
    lines = report_lines(FreshnessReport(stores=stores, rates=None))
    assert sum("take a snapshot every hour" in line for line in lines) == 3
    assert "497 stores more like this (all with --json)" in lines
    assert sum("the changelog begins at" in line for line in lines) == 3

    alike = [msgspec.structs.replace(each, reason="the topic is gone") for each in stores]
    lines = report_lines(FreshnessReport(stores=tuple(alike), rates=None))
    assert lines.count("  the topic is gone") == 1
    (named,) = (line for line in lines if line.endswith(", and 490 more"))
    assert named.startswith("orders/0_0/counts, orders/0_1/counts, ")

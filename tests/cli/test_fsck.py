"""`snapstore fsck`: exit codes, the document, and the words for people."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.state_dirs import make_database, write_checkpoint
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
    topic,
)

DAY_MS = 86_400_000


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    state_dir = tmp_path / "orders-state"
    make_key_value(state_dir, "0_0", "counts", Pairs(pairs=some_pairs(900), applied_offset=99))
    return state_dir


def make_uneven(state_dir: Path) -> None:
    make_window(
        state_dir,
        "0_0",
        "window",
        {
            1 * DAY_MS: Pairs(pairs=some_pairs(10), applied_offset=40),
            2 * DAY_MS: Pairs(pairs=some_pairs(10), applied_offset=99),
        },
    )


def test_a_clean_directory_is_0_and_says_so(cli: Cli, orders: Path) -> None:
    result = cli("fsck", orders)
    assert result.code == 0
    assert result.out.splitlines()[-1] == "1 store: 1 starts clean"


def test_rows_that_would_be_lost_are_6_with_the_reason_and_what_to_do(
    cli: Cli, orders: Path
) -> None:
    make_uneven(orders)
    result = cli("fsck", orders, "--kafka-streams-version", "4.4.0")
    assert result.code == 6
    assert "orders/0_0/window: LOSES ROWS" in result.out
    assert "its segments hold offsets from 40 to 99" in result.out
    assert "snapstore fsck --repair" in result.out


def test_damage_is_4(cli: Cli, orders: Path) -> None:
    current = orders / APPLICATION / "0_0" / "rocksdb" / "counts" / "CURRENT"
    current.write_text("MANIFEST-009999\n")
    assert cli("fsck", orders).code == 4


def test_what_nobody_sees_comes_before_what_is_loud(cli: Cli, orders: Path) -> None:
    make_uneven(orders)
    current = orders / APPLICATION / "0_0" / "rocksdb" / "counts" / "CURRENT"
    current.write_text("MANIFEST-009999\n")
    assert cli("fsck", orders).code == 6


def test_an_older_version_that_cannot_open_it_is_4(cli: Cli, orders: Path) -> None:
    result = cli("fsck", orders, "--kafka-streams-version", "4.2.1")
    assert result.code == 4
    assert "Column families not opened: offsets" in result.out


def test_what_cannot_be_told_is_3(cli: Cli, tmp_path: Path) -> None:
    task = tmp_path / "odd" / APPLICATION / "0_0"
    for name in ("first", "second"):
        make_database(task / "rocksdb" / name, {"default": {b"k": b"v"}})
    write_checkpoint(task, "customers 0 5", "products 0 6")
    result = cli("fsck", tmp_path / "odd")
    assert result.code == 3
    assert "cannot tell which topic is its changelog: customers, products" in result.out


def test_the_document_has_every_fact(cli: Cli, orders: Path) -> None:
    make_uneven(orders)
    result = cli("fsck", orders, "--json", "--scan")
    document = result.document
    assert result.code == 6
    assert (document["kind"], document["version"]) == ("fsck", 1)
    assert document["verdict"] == "loses_rows"
    assert document["scanned_pairs"] == 900 + 20 + 3 * 2
    assert document["checked_changelogs"] is None
    (task,) = document["tasks"]
    assert task["running"] is False
    assert task["assumed_readers"] == ["oldest", "newest"]
    assert {each["name"] for each in task["databases"]} == {
        "rocksdb/counts",
        f"window/window.{DAY_MS}",
        f"window/window.{2 * DAY_MS}",
    }
    (lossy,) = [each for each in task["stores"] if each["verdict"] == "loses_rows"]
    assert lossy["cause"] == "uneven"
    assert lossy["resume_offset"] == 100
    assert lossy["skipped"] == 59
    assert lossy["changelog"] == f"{topic('window')}:0"


def test_names_that_fit_nothing_are_10(cli: Cli, orders: Path, tmp_path: Path) -> None:
    assert cli("fsck", orders, "--task", "0_9").code == 10
    assert cli("fsck", tmp_path / "nowhere").code == 10
    assert cli("fsck").code == 2

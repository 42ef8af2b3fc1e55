"""`snapstore fsck`: exit codes, the document, and the words for people."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.state_dirs import holding_locks, make_database, write_checkpoint
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


@pytest.mark.parametrize("inside", [(), ("lost+found",), ("photos/2026",)])
def test_where_there_is_no_application_that_is_said_and_10(
    cli: Cli, tmp_path: Path, inside: tuple[str, ...]
) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    for name in inside:
        (folder / name).mkdir(parents=True)
    for more in ((), ("--repair",)):
        result = cli("fsck", folder, *more)
        assert result.code == 10
        assert f"there is no application of Kafka Streams in {folder}" in result.err
        assert result.out == ""
    prepared = cli("prepare", folder, "--application", APPLICATION)
    assert prepared.code == 0, prepared.err
    assert "there is nothing on the disk" in prepared.out


def test_an_application_without_stores_is_looked_at(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty" / APPLICATION / "0_0").mkdir(parents=True)
    result = cli("fsck", tmp_path / "empty")
    assert result.code == 0
    assert "no store was found" in result.out


def test_counts_agree_with_their_words(cli: Cli, orders: Path) -> None:
    for task in ("0_1", "0_2"):
        make_key_value(orders, task, "counts", Pairs(pairs=some_pairs(9), applied_offset=9))
    make_uneven(orders)
    result = cli("fsck", orders, "--kafka-streams-version", "4.4.0")
    assert result.out.splitlines()[-1] == "4 stores: 1 loses rows, 3 start clean"


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


@pytest.mark.slow
def test_a_repair_is_planned_done_and_then_needs_nothing(cli: Cli, orders: Path) -> None:
    make_uneven(orders)
    planned = cli("fsck", orders, "--repair", "--dry-run")
    assert planned.code == 6
    assert "the least offset 40 is noted in all 2 databases" in planned.out
    assert planned.out.splitlines()[-1] == "1 store would be mended"

    done = cli("fsck", orders, "--repair", "--json")
    assert done.code == 0
    assert done.document["kind"] == "fsck_repair"
    (task,) = done.document["tasks"]
    (store,) = task["stores"]
    assert (store["action"], store["least"]) == ("note_least", {f"{topic('window')}:0": 40})
    assert task["quarantine"] is None
    assert done.document["after"]["verdict"] == "clean"

    again = cli("fsck", orders, "--repair")
    assert (again.code, again.out.splitlines()[0]) == (0, "there is nothing to mend")


def test_what_is_set_aside_is_named_with_its_place(cli: Cli, orders: Path) -> None:
    current = orders / APPLICATION / "0_0" / "rocksdb" / "counts" / "CURRENT"
    current.write_text("MANIFEST-009999\n")
    result = cli("fsck", orders, "--repair")
    assert result.code == 0
    (kept,) = [line for line in result.out.splitlines() if line.startswith("  kept in ")]
    assert (Path(kept.removeprefix("  kept in ")) / "README.txt").exists()


def test_a_running_application_is_5_and_a_wrong_option_2(cli: Cli, orders: Path) -> None:
    make_uneven(orders)
    lock = orders / APPLICATION / ".lock"
    lock.touch()
    with holding_locks([lock]):
        result = cli("fsck", orders, "--repair", "--json")
    assert (result.code, result.error["code"]) == (5, "store_in_use")
    assert cli("fsck", orders, "--dry-run").code == 2
    assert cli("fsck", orders, "--from-snapshot").code == 2


@pytest.mark.slow
def test_a_snapshot_takes_the_place_of_a_mend_where_asked_for(
    cli: Cli, orders: Path, tmp_path: Path
) -> None:
    make_uneven(orders)
    url = (tmp_path / "repository").as_uri()
    assert cli("init", "-r", url).code == 0
    assert cli("snapshot", "-r", url, "--state-dir", orders).code == 0
    asked = ("fsck", orders, "-r", url, "--application", APPLICATION, "--repair", "--from-snapshot")
    planned = cli(*asked, "--dry-run", "--json")
    assert {each["store"]: each["decision"] for each in planned.document["decisions"]} == {
        "counts": "as_it_is",
        "window": "restore",
    }
    # Without Kafka nothing proves the snapshot, so it is mended all the same, and said.
    done = cli(*asked, "--json")
    assert done.code == 0
    assert {each["store"]: each["outcome"] for each in done.document["stores"]} == {
        "counts": "as_it_is",
        "window": "mended",
    }
    assert any("nothing proves snapshot" in note for note in done.document["notes"])


@pytest.mark.slow
def test_prepare_says_what_it_decided_and_why(cli: Cli, orders: Path, tmp_path: Path) -> None:
    make_uneven(orders)
    result = cli("prepare", orders, "--application", APPLICATION)
    assert result.code == 0
    assert "its segments hold offsets from 40 to 99" in result.out
    assert result.out.splitlines()[-1] == "2 stores: 1 starts as it is, 1 mended"
    assert cli("prepare", orders, "--application", APPLICATION, "--share", "3/2").code == 2


@pytest.mark.slow
def test_prepare_brings_back_an_empty_disk_or_names_the_choices(
    cli: Cli, orders: Path, tmp_path: Path
) -> None:
    url = (tmp_path / "repository").as_uri()
    here = {"SNAPSTORE_INSTANCE": "pod-0", "SNAPSTORE_REPOSITORY": url}
    assert cli("init", env=here).code == 0
    assert cli("snapshot", "--state-dir", orders, env=here).code == 0
    empty = tmp_path / "empty"
    asked = ("prepare", empty, "--application", APPLICATION, "--allow-unchecked-changelog")

    new = cli(*asked, "--json", env={**here, "SNAPSTORE_INSTANCE": "pod-1"})
    assert new.code == 0
    assert new.document["empty_start"] == "none_of_this_instance"
    refused = cli(*asked, "--instance", "pod-1", "--json", env=here)
    assert refused.code == 5
    assert refused.error["facts"] == {"instances": ["pod-0"], "tasks": ["0_0"]}

    planned = cli(*asked, "--dry-run", env=here)
    assert (planned.code, planned.out) == (0, "restore 1 task: 0_0\n")
    brought = cli(*asked, "--json", env=here)
    assert brought.code == 0
    (store,) = brought.document["stores"]
    assert (store["store"], store["outcome"]) == ("counts", "restored")
    assert cli("fsck", empty).code == 0

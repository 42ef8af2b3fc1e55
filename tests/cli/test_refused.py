"""When no snapshot could be taken, every reason is told, and of how many stores."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.fixtures import unpack
from tests.support.state_dirs import holding_locks, make_database, write_checkpoint


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Two exactly-once stores and one that was never noted, of an application that runs."""
    state = tmp_path / "mixed"
    task = state / "orders" / "0_0"
    for name in ("counts", "sums"):
        make_database(task / "rocksdb" / name, {"default": {b"k": b"v"}})
    write_checkpoint(task, "orders-counts-changelog 0 -4", "orders-sums-changelog 0 -4")
    make_database(state / "orders" / "0_1" / "rocksdb" / "late", {"default": {b"k": b"v"}})
    (state / "orders" / ".lock").touch()
    return state


def test_each_reason_comes_once_with_its_number_of_stores(cli: Cli, url: str, mixed: Path) -> None:
    with holding_locks([mixed / "orders" / ".lock"]):
        result = cli("snapshot", "-r", url, "--state-dir", mixed, "--json")
    assert result.code == 5
    message = result.error["message"]
    assert message.startswith("refused: 2 stores: ")
    assert "exactly-once" in message
    assert "; 1 store: " in message
    assert "orders/" not in message
    assert len(result.error["facts"]["failed"]) == 3
    assert {each["error"]["code"] for each in result.document["items"]} == {
        "exactly_once_hot",
        "unknown_offset",
    }


def test_what_differs_only_by_names_and_numbers_is_one_reason(
    cli: Cli, url: str, tmp_path: Path
) -> None:
    state = tmp_path / "hot"
    state.mkdir()
    application = unpack("ks440-alos-hot", state)
    for task in ("1_0", "1_1", "global"):
        shutil.rmtree(application / task)
    for known in ("0_0/rocksdb/versioned", "0_1/rocksdb/plain", "0_1/rocksdb/table"):
        shutil.rmtree(application / known)
    shutil.rmtree(application / "0_1/rocksdb/versioned")
    message = cli("snapshot", "-r", url, "--state-dir", state, "--json").error["message"]
    assert message.count(" stores: ") == 2, message


def test_of_one_store_the_whole_reason_is_told(cli: Cli, url: str, mixed: Path) -> None:
    result = cli("snapshot", "-r", url, "--state-dir", mixed, "--task", "0_1", "--json")
    assert result.code == 5
    assert "orders/0_1/late" in result.error["message"]

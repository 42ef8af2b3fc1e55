"""Stores of Quix Streams and Faust through the ordinary commands, without a broker."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command import Command
from tests.support.python_engines import Pair, expected, unpack
from tests.support.rocksdb import raw_contents
from tests.support.state_dirs import holding_locks

pytestmark = pytest.mark.slow

APPLICATIONS: Mapping[Pair, str] = {
    "quix_alos": "qfix",
    "quix_eos_ttl": "qeos",
    "faust_clean": "fapp",
    "faust_hot": "fhot",
}
PAIRS = tuple(APPLICATIONS)


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


def commands(pair: Pair, state_dir: Path, tmp_path: Path) -> Command:
    state = {
        "dir": str(state_dir),
        "layout": pair.partition("_")[0],
        "application": APPLICATIONS[pair],
    }
    command = Command(tmp_path / "home", str(tmp_path / "repository"), sections={"state": state})
    command("init")
    return command


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS)
def test_stores_copied_hot_come_back_with_what_they_held(
    pair: Pair, state_dir: Path, tmp_path: Path
) -> None:
    unpack(pair, "A", state_dir)
    snapstore = commands(pair, state_dir, tmp_path)
    stores = expected(pair, "A")
    found = snapstore("discover").document["items"]
    assert sorted(
        (item["positions"][0]["topic"], item["positions"][0]["partition"]) for item in found
    ) == sorted((store.changelog, store.partition) for store in stores)
    snapstore("snapshot")
    snapstore("verify", "--read-data", "--open")
    shutil.rmtree(state_dir)
    answer = snapstore(
        "restore", "--application", APPLICATIONS[pair], "--allow-unchecked-changelog"
    )
    assert len(answer.document["items"]) == len(stores)
    assert "wipes" not in answer.out + answer.err
    for store in stores:
        folder = state_dir / store.path
        assert (folder / "rocksdict-config.json").exists()
        assert raw_contents(folder, tmp_path) == store.contents
    assert not list(state_dir.rglob("LOCK")), "nobody has opened them yet"


def test_one_partition_of_one_store_comes_back_alone(state_dir: Path, tmp_path: Path) -> None:
    unpack("quix_alos", "B", state_dir)
    snapstore = commands("quix_alos", state_dir, tmp_path)
    snapstore("snapshot")
    shutil.rmtree(state_dir)
    snapstore("restore", "qfix/qfixin/1/default", "--allow-unchecked-changelog")
    assert [path.parent for path in state_dir.rglob("CURRENT")] == [
        state_dir / "qfix/default/qfixin/1"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["quix_alos", "faust_clean"])
def test_a_running_application_is_not_restored_over(
    pair: Pair, state_dir: Path, tmp_path: Path
) -> None:
    unpack(pair, "B", state_dir)
    snapstore = commands(pair, state_dir, tmp_path)
    asked = ("restore", "--application", APPLICATIONS[pair], "--allow-unchecked-changelog")
    one_of_them = sorted(state_dir.rglob("LOCK"))[-1]
    with holding_locks([one_of_them]):
        snapstore("snapshot")
        refused = snapstore(*asked, "--replace", expect=5)
        assert refused.error["code"] == "store_in_use"
    snapstore(*asked, "--replace")
    for store in expected(pair, "B"):
        assert raw_contents(state_dir / store.path, tmp_path) == store.contents

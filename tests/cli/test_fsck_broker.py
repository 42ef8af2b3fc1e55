"""`snapstore fsck` with the changelog on a real broker: a topic deleted and created again."""

from pathlib import Path
from typing import Any

import pytest

from snapstore.testing.changelog_contract import numbered
from tests.cli.conftest import Cli
from tests.support.answer import Answer
from tests.support.broker import Broker
from tests.support.logged_store import LoggedStore


@pytest.fixture
def logged(broker: Broker, tmp_path: Path) -> LoggedStore:
    return LoggedStore(broker, tmp_path)


def fsck(cli: Cli, logged: LoggedStore, *arguments: object) -> Answer:
    version = ("--kafka-streams-version", "4.4.0", "--guarantee", "at_least_once")
    return cli("fsck", logged.state_dir, *version, *arguments, "--json", env=logged.settings)


def only_store(result: Answer) -> Any:
    (task,) = result.document["tasks"]
    (store,) = task["stores"]
    return store


def test_a_topic_that_was_created_again_and_is_longer_is_told_and_mended(
    logged: LoggedStore, cli: Cli
) -> None:
    logged.write(numbered(100))
    logged.save(99)
    found = fsck(cli, logged)
    assert (found.code, only_store(found)["verdict"]) == (0, "clean")

    logged.log.recreate(logged.changelog)
    logged.write(numbered(300))
    found = fsck(cli, logged)
    assert found.code == 6
    told = only_store(found)
    assert (told["verdict"], told["cause"]) == ("loses_rows", "topic_recreated")

    assert fsck(cli, logged, "--repair").code == 0
    folder = logged.state_dir / "orders" / "0_0" / "rocksdb" / logged.name
    assert not folder.exists()
    assert fsck(cli, logged).code == 0


def test_a_topic_that_was_created_again_and_is_shorter_is_told_without_a_repository(
    logged: LoggedStore, cli: Cli
) -> None:
    logged.write(numbered(100))
    logged.keep(99)
    logged.log.recreate(logged.changelog)
    logged.write(numbered(50))
    del logged.settings["SNAPSTORE_REPOSITORY"]
    found = fsck(cli, logged)
    assert (found.code, only_store(found)["verdict"]) == (6, "loses_rows")

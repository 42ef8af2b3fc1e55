"""The command line of replays: what it asks for before it reads anything."""

from pathlib import Path

from tests.cli.conftest import Cli
from tests.support.restore_lab import tree

NOBODY = {"SNAPSTORE_KAFKA_BOOTSTRAP": "127.0.0.1:1"}


def test_a_replay_needs_kafka(cli: Cli, state_dir: Path) -> None:
    before = tree(state_dir)
    result = cli("replay", state_dir, "--json")
    assert (result.code, result.error["code"]) == (2, "config")
    assert "kafka.bootstrap" in result.error["hint"]
    assert tree(state_dir) == before


def test_an_offset_and_a_time_exclude_each_other(cli: Cli, state_dir: Path) -> None:
    result = cli("replay", state_dir, "--to-offset", 5, "--to-time", "2026-03-01", env=NOBODY)
    assert result.code == 2
    assert "exclude each other" in result.err


def test_an_offset_is_of_one_store(cli: Cli, state_dir: Path) -> None:
    result = cli("replay", state_dir, "--to-offset", 5, env=NOBODY)
    assert result.code == 2
    assert "name one store" in result.err


def test_a_time_that_is_none_is_a_usage_error(cli: Cli, state_dir: Path) -> None:
    result = cli("replay", state_dir, "--to-time", "yesterday")
    assert result.code == 2
    assert "not a time" in result.err


def test_where_a_restore_is_to_stop_makes_sense_only_with_a_replay(cli: Cli, filled: str) -> None:
    result = cli("restore", "-r", filled, "--application", "a", "--to-offset", 5)
    assert result.code == 2
    assert "--replay" in result.err


def test_a_restore_with_replay_needs_kafka(cli: Cli, filled: str, tmp_path: Path) -> None:
    (first, *_) = cli("list", "-r", filled, "--json").document["items"]
    target = tmp_path / "target"
    result = cli("restore", "-r", filled, first["id"], "--target", target, "--replay", "--json")
    assert (result.code, result.error["code"]) == (2, "config")
    assert not target.exists()


def test_a_snapshot_from_the_changelog_needs_kafka(cli: Cli, url: str, state_dir: Path) -> None:
    for way in ("--from-changelog", "--roll-forward"):
        result = cli("snapshot", "-r", url, "--state-dir", state_dir, way)
        assert result.code == 2
        assert "Kafka is not configured" in result.err

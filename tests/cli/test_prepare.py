"""`snapstore prepare`: which application is meant."""

from pathlib import Path

from tests.cli.conftest import Cli
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs

CONTENT = Pairs(pairs=some_pairs(300), applied_offset=99)


def test_the_only_application_of_a_disk_is_taken_and_named(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    for more in ((), ("--dry-run",)):
        result = cli("prepare", state, *more)
        assert result.code == 0, result.err
        assert f"note: {APPLICATION} is taken: the only application in {state}" in result.err
        assert "counts" in result.out


def test_of_several_applications_none_is_guessed(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    (state / "payments" / "0_0").mkdir(parents=True)
    result = cli("prepare", state, "--json")
    assert result.code == 2
    assert result.error["facts"]["applications"] == [APPLICATION, "payments"]
    assert "--application" in result.error["hint"]


def test_the_configured_application_is_meant_whatever_else_is_there(
    cli: Cli, tmp_path: Path
) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    (state / "payments" / "0_0").mkdir(parents=True)
    result = cli("prepare", state, env={"SNAPSTORE_APPLICATION": APPLICATION})
    assert result.code == 0, result.err
    assert "payments" not in result.out + result.err


def test_on_an_empty_disk_it_must_be_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    result = cli("prepare", tmp_path / "disk")
    assert result.code == 2
    assert "no application was named" in result.err

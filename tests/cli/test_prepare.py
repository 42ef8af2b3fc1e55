"""`snapstore prepare`: which application is meant, and what stops no start."""

import os
import shutil
from pathlib import Path

from tests.cli.conftest import Cli
from tests.support.fixtures import unpack_custom
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


def test_h06_what_only_the_application_can_open_stops_no_start(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    unpack_custom("reverse", state / APPLICATION / "0_1/rocksdb/counts")
    assert cli("fsck", state).code == 3
    result = cli("prepare", state, "--application", APPLICATION)
    assert result.code == 0, result.out
    assert "starts as it is, not looked into" in result.out
    assert "1 store that only the application can open" in result.err
    document = cli("prepare", state, "--application", APPLICATION, "--json").document
    assert [each["outcome"] for each in document["stores"]] == ["as_it_is", "unseen"]
    assert document["verdict"] == "unknown"
    assert any("only the application can open" in note for note in document["notes"])


def test_h06_what_should_have_been_read_and_was_not_is_still_3(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    unpack_custom("reverse", state / APPLICATION / "0_1/rocksdb/counts")
    with_an_odd_folder(state)
    assert cli("prepare", state, "--application", APPLICATION).code == 3


def test_h38_a_name_that_is_not_utf_8_hides_no_other_store(cli: Cli, tmp_path: Path) -> None:
    state = tmp_path / "disk"
    make_key_value(state, "0_0", "counts", CONTENT)
    odd = with_an_odd_folder(state)
    for verb in (("fsck",), ("fsck", "--repair"), ("prepare", "--application", APPLICATION)):
        for loudness in ((), ("--json",)):
            result = cli(*verb, state, *loudness)
            assert result.code == 3, result.out + result.err
            if verb != ("fsck", "--repair"):
                assert r"odd\udcff" in result.out.replace("\\\\", "\\")
                assert "counts" in result.out
    assert odd.is_dir()
    text = cli("fsck", state).out
    assert "starts clean" in text
    assert "could not look" in text
    assert "rename it while the application is stopped" in text


def with_an_odd_folder(state: Path) -> Path:
    """Put a copy of a store beside it, under a name that is not UTF-8."""
    stores = state / APPLICATION / "0_0/rocksdb"
    odd = Path(os.fsdecode(os.fsencode(stores) + b"/odd\xff"))
    shutil.copytree(stores / "counts", odd)
    return odd

"""Output fits a terminal without losing an id, and is whole everywhere else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from snapstore.cli.narrow import fitted, wrapped
from snapstore.cli.text import Column, table
from tests.cli.conftest import Cli
from tests.support.fixtures import unpack
from tests.support.terminal import shown_on_terminal

ID = "0123456789ab"
COLUMNS = (
    Column("id"),
    Column("store", cut=True),
    Column("size", right=True, spare=1),
    Column("tags", spare=2),
    Column("because", below=True),
)
ROWS = [
    (ID, "a-store-with-a-rather-long-name", "12.3 MiB", "release=42 host=a", "it is old " * 9),
    (ID, "b", "1 B", "", ""),
]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    unpack("ks440-alos-hot", folder)
    return folder


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_a_table_fits_and_keeps_every_id(width: int) -> None:
    lines = "\n".join(fitted(table(COLUMNS, ROWS), width)).split("\n")
    assert max(map(len, lines)) <= width + len("\x1b[1m\x1b[0m")
    assert "\n".join(lines).count(ID) == 2
    assert "it is old" in "\n".join(lines)


def test_the_least_needed_columns_go_first_and_are_named() -> None:
    text = "\n".join(fitted(table(COLUMNS, ROWS), 56))
    assert "TAGS" not in text
    assert "SIZE" in text
    assert "a-store-with-a-rather-long-name" in text
    assert text.endswith("(not shown for want of width: tags)")


def test_without_a_terminal_a_table_is_whole() -> None:
    lines = [*fitted(table(COLUMNS, ROWS), None)]
    assert len(lines) == 3
    assert all(cell in lines[1] for cell in map(str.strip, ROWS[0]))


def test_sentences_break_between_words_only() -> None:
    name = "application/0_0/" + "n" * 60
    lines = wrapped(f"  the files of {name} do not say which offset they hold", 40)
    assert name in [line.strip() for line in lines]
    assert all(line.startswith("  ") for line in lines)
    assert " ".join(" ".join(lines).split()).startswith("the files of application/")


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 100, 200])
def test_on_a_terminal_no_line_is_too_long_and_no_id_is_cut(
    cli: Cli, url: str, tmp_path: Path, state_dir: Path, columns: int
) -> None:
    repository = ("-r", url)
    taken = shown_on_terminal(
        columns, tmp_path, "snapshot", *repository, "--state-dir", state_dir, "--no-progress"
    )
    ids = {each["id"][:12] for each in cli("list", *repository, "--json").document["items"]}
    assert len(ids) == 6
    for lines in (
        taken,
        shown_on_terminal(columns, tmp_path, "list", *repository),
        shown_on_terminal(columns, tmp_path, "list", "--long", *repository),
        shown_on_terminal(columns, tmp_path, "status", *repository),
        shown_on_terminal(columns, tmp_path, "discover", state_dir),
        shown_on_terminal(columns, tmp_path, "fsck", state_dir),
    ):
        long = [line for line in lines if len(line) > columns]
        # Only a single word may be longer than the terminal is wide.
        assert not [line for line in long if " " in line.strip()], long
        text = "\n".join(lines)
        assert "Traceback" not in text
        if "SNAPSHOT" in text or text.startswith("ID"):
            assert {each for each in ids if each in text} == ids


@pytest.mark.slow
def test_in_a_pipe_nothing_is_cut_or_broken_whatever_the_width_is_said_to_be(
    cli: Cli, url: str, tmp_path: Path, state_dir: Path
) -> None:
    cli("snapshot", "-r", url, "--state-dir", state_dir)
    stores = {
        f"{each['application']}/{each['task']}/{each['store']}"
        for each in cli("discover", state_dir, "--json").document["items"]
    }
    for line in (["discover", str(state_dir)], ["list", "--long", "-r", url]):
        done = subprocess.run(
            [sys.executable, "-m", "snapstore", *line],
            env={"HOME": str(tmp_path), "COLUMNS": "40", "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert ".." not in done.stdout
        assert max(map(len, done.stdout.split("\n"))) > 100
        if line[0] == "discover":
            named = set(re.findall(r"ks440-alos-hot/[^, \n]+", done.stdout))
            assert named <= stores
            assert "join-left-shared-join-store" in done.stdout

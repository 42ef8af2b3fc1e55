"""A pipe, a socket or a folder in the place of a file keeps no command waiting."""

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.command_lines import run_lines
from tests.support.state_dirs import write_checkpoint
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs, topic

pytestmark = pytest.mark.slow


def bind(path: Path) -> None:
    """A socket's name may be short only."""
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)
    finally:
        os.chdir(before)


KINDS: Mapping[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "folder": Path.mkdir,
}


def replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    KINDS[kind](path)


def only(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """A state directory with two stores in two tasks; those of 0_0 are tampered with."""
    folder = tmp_path / "state"
    for task in ("0_0", "0_1"):
        content = Pairs(pairs=some_pairs(300), applied_offset=99)
        store = make_key_value(folder, task, "counts", content)
        (store / "LOCK").touch()
        write_checkpoint(store.parents[1], f"{topic('counts')} {task[-1]} 99")
    (folder / APPLICATION / ".lock").touch()
    (folder / APPLICATION / "kafka-streams-process-metadata").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("pipe", ".checkpoint"),
        ("pipe", ".checkpoint_custom"),
        ("pipe", "rocksdb/counts/CURRENT"),
        ("pipe", "rocksdb/counts/MANIFEST-*"),
        ("pipe", "rocksdb/counts/OPTIONS-*"),
        ("pipe", "rocksdb/counts/LOCK"),
        ("pipe", "rocksdb/counts/*.sst"),
        ("pipe", "../.lock"),
        ("pipe", "../kafka-streams-process-metadata"),
        ("socket", ".checkpoint"),
        ("socket", "rocksdb/counts/CURRENT"),
        ("folder", ".checkpoint"),
        ("folder", "rocksdb/counts/*.sst"),
    ],
)
def test_every_command_ends_whatever_lies_in_the_place_of_a_file(
    tmp_path: Path, state_dir: Path, kind: str, name: str
) -> None:
    task = state_dir / APPLICATION / "0_0"
    replace(only(task, name) if "*" in name else task / name, kind)
    where = str(state_dir)
    repository = str(tmp_path / "repository")
    _, discovered, taken, checked, prepared = run_lines(
        tmp_path,
        ["init", "-r", repository],
        ["discover", where, "--json"],
        ["snapshot", "-r", repository, "--state-dir", where, "--json"],
        ["fsck", where, "--json"],
        ["prepare", where, "--application", APPLICATION, "--json"],
    )
    for told in (discovered, taken, checked, prepared):
        assert told.code != 1, told.err
        assert "Traceback" not in told.err
    if not name.startswith("../"):
        found = discovered.document["items"]
        assert [each["problem"] for each in found if each["task"] == "0_1"] == [None], found
        stored = taken.document["items"]
        assert [each["status"] for each in stored if each["task"] == "0_1"] == ["stored"], stored

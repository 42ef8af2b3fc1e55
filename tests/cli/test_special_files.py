"""A pipe, a socket or a folder in the place of a file keeps no command waiting."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.state_dirs import write_checkpoint
from tests.support.streams_store import APPLICATION, Pairs, make_key_value, some_pairs, topic

LONGEST_S = 60

# Runs every command line that is on stdin, and prints what each returned.
RUN = """
import contextlib, io, json, os, sys
from snapstore.cli.main import run
answers = []
for line in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(line, {"HOME": os.environ["HOME"]})
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


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


def answers(tmp_path: Path, *lines: list[str]) -> list[tuple[int, str, str]]:
    """Run command lines in one child, which must end by itself."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(lines),
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(answer) for answer in json.loads(done.stdout)]


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
    _, discovered, taken, checked, planned = answers(
        tmp_path,
        ["init", "-r", repository],
        ["discover", where, "--json"],
        ["snapshot", "-r", repository, "--state-dir", where, "--json"],
        ["fsck", where, "--json"],
        ["prepare", where, "--application", APPLICATION, "--json"],
    )
    for code, _, err in (discovered, taken, checked, planned):
        assert code != 1, err
        assert "Traceback" not in err
    if not name.startswith("../"):
        found = json.loads(discovered[1])["items"]
        assert [each["problem"] for each in found if each["task"] == "0_1"] == [None], found
        stored = json.loads(taken[1])["items"]
        assert [each["status"] for each in stored if each["task"] == "0_1"] == ["stored"], stored

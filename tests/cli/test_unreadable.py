"""One store that cannot be read stops no other: it is named, and the others go on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.answer import Answer
from tests.support.command_lines import run_lines
from tests.support.state_dirs import make_database, write_checkpoint
from tests.support.streams_store import (
    APPLICATION,
    Pairs,
    make_key_value,
    make_window,
    some_pairs,
    topic,
)

CONTENT = Pairs(pairs=some_pairs(300), applied_offset=99)
STORES = ("0_0/counts", "0_0/window", "0_1/counts", "0_1/sums")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    make_key_value(folder, "0_0", "counts", CONTENT)
    make_window(folder, "0_0", "window", {1000: CONTENT, 2000: CONTENT})
    for store in ("counts", "sums"):
        locked = make_key_value(folder, "0_1", store, CONTENT) / "LOCK"
        locked.touch()
    return folder


Shut = Callable[[Path], Path]


@pytest.fixture
def shut() -> Iterator[Shut]:
    """Take every right to a file or a folder away; given back at the end."""
    before: list[tuple[Path, int]] = []

    def take(path: Path) -> Path:
        before.append((path, path.stat().st_mode))
        path.chmod(0)
        return path

    yield take
    for path, mode in reversed(before):
        path.chmod(mode)


def look(home: Path, state_dir: Path) -> tuple[Answer, Answer, Answer]:
    repository = str(home / "repository")
    init, discovered, taken, checked = run_lines(
        home,
        ["init", "-r", repository],
        ["discover", str(state_dir), "--json"],
        ["snapshot", "-r", repository, "--state-dir", str(state_dir), "--json"],
        ["fsck", str(state_dir), "--json"],
        heed_modes=True,
    )
    assert init.code == 0, init.err
    return discovered, taken, checked


def named(item: Any) -> str:
    return f"{item['task'] or ''}/{item['store'] or ''}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "missed"),
    [
        ("0_0/rocksdb/counts", ["0_0/counts"]),
        ("0_0/window", ["0_0/window"]),
        ("0_0/window/window.1000", ["0_0/window"]),
        ("0_0/rocksdb", ["0_0/"]),
        ("0_1", ["0_1/"]),
        ("0_1/rocksdb/sums/CURRENT", ["0_1/sums"]),
        ("0_1/rocksdb/sums/LOCK", ["0_1/sums"]),
        ("0_1/rocksdb/sums/*.sst", ["0_1/sums"]),
    ],
)
def test_what_cannot_be_read_is_named_and_the_others_go_on(
    tmp_path: Path, state_dir: Path, shut: Shut, path: str, missed: list[str]
) -> None:
    shut(sorted((state_dir / APPLICATION).glob(path))[0])
    discovered, taken, checked = look(tmp_path, state_dir)
    gone = {store for store in STORES if any(store.startswith(each) for each in missed)}
    if path == "0_0/rocksdb":
        gone = {"0_0/counts"}
    others = sorted(set(STORES) - gone)

    assert discovered.code == 3, discovered.err
    found = {named(each): each["problem"] for each in discovered.document["items"]}
    assert sorted(store for store, problem in found.items() if problem is None) == others
    assert sorted(store for store, problem in found.items() if problem is not None) == missed

    assert taken.code == 3, taken.err
    outcomes = {named(each): each["status"] for each in taken.document["items"]}
    assert outcomes == dict.fromkeys(others, "stored") | dict.fromkeys(missed, "failed")

    assert checked.code == 3, checked.err
    verdicts = {named(each): each for task in checked.document["tasks"] for each in task["stores"]}
    assert sorted(verdicts) == sorted([*others, *missed])
    for store in missed:
        assert verdicts[store]["cause"] == "unreadable"
        assert verdicts[store]["reason"].startswith("could not look: ")
        assert verdicts[store]["verdict"] == "unknown"
    assert {verdicts[store]["verdict"] for store in others} == {"clean"}


def test_a_line_for_what_cannot_be_seen_is_not_taken_for_one_without_files(
    tmp_path: Path, state_dir: Path, shut: Shut
) -> None:
    task = state_dir / APPLICATION / "0_2"
    make_database(task / "rocksdb" / "old", {"default": {b"k": b"v"}})
    write_checkpoint(task, f"{topic('old')} 2 99")
    shut(task / "rocksdb")
    (checked,) = run_lines(
        tmp_path, ["fsck", str(state_dir), "--task", "0_2", "--json"], heed_modes=True
    )
    assert checked.code == 3
    assert checked.document["verdict"] == "unknown"


def test_nothing_is_repaired_in_a_task_that_cannot_be_read_as_a_whole(
    tmp_path: Path, state_dir: Path, shut: Shut
) -> None:
    other = state_dir / APPLICATION / "0_1" / "rocksdb" / "sums" / "CURRENT"
    other.write_text("MANIFEST-009999\n")
    broken = state_dir / APPLICATION / "0_0" / "window" / "window.1000" / "CURRENT"
    broken.write_text("MANIFEST-009999\n")
    shut(state_dir / APPLICATION / "0_0" / "rocksdb" / "counts")
    repaired, prepared = run_lines(
        tmp_path,
        ["fsck", str(state_dir), "--repair", "--json"],
        ["prepare", str(state_dir), "--application", APPLICATION, "--json"],
        heed_modes=True,
    )
    assert repaired.code == 4, repaired.err
    assert [task["task"] for task in repaired.document["tasks"]] == ["0_1"]
    assert broken.read_text() == "MANIFEST-009999\n"
    assert not other.exists()
    assert prepared.code == 4, prepared.err


def test_if_nothing_could_be_read_that_is_the_error_and_final_h39(
    tmp_path: Path, state_dir: Path, shut: Shut
) -> None:
    for task in ("0_0", "0_1"):
        shut(state_dir / APPLICATION / task)
    discovered, taken, checked = look(tmp_path, state_dir)
    assert (discovered.code, taken.code, checked.code) == (2, 2, 3)
    assert "may not be read" in discovered.error["message"]


def test_an_application_that_cannot_be_read_hides_no_other(
    tmp_path: Path, state_dir: Path, shut: Shut
) -> None:
    folder = state_dir / "payments"
    (folder / "0_0").mkdir(parents=True)
    shut(folder)
    discovered, taken, checked = look(tmp_path, state_dir)
    assert (discovered.code, taken.code, checked.code) == (3, 3, 3)
    assert len(discovered.document["items"]) == len(STORES) + 1
    assert [each["status"] for each in taken.document["items"]].count("stored") == len(STORES)


@pytest.mark.parametrize(
    ("layout", "place"), [("quix", "group/sums/topic"), ("faust", "v1/tables")]
)
def test_so_it_is_with_the_other_layouts(
    tmp_path: Path, shut: Shut, layout: str, place: str
) -> None:
    state_dir = tmp_path / "shop-data"
    for number in (0, 1):
        name = f"{number}" if layout == "quix" else f"sums-{number}.db"
        folder = make_database(state_dir / place / name, {"default": {b"k": b"v"}})
        (folder / "rocksdict-config.json").unlink(missing_ok=True)
    unread = state_dir / place / ("1" if layout == "quix" else "sums-1.db")
    line = ["discover", str(state_dir), "--layout", layout, "--json"]
    shut(unread)
    (one,) = run_lines(tmp_path, line, heed_modes=True)
    assert one.code == 3, one.err
    problems = [each["problem"] for each in one.document["items"]]
    assert [problem["code"] for problem in problems if problem] == [
        "unknown_offset",
        "access_denied",
    ]
    shut(state_dir / place)
    (whole,) = run_lines(tmp_path, line, heed_modes=True)
    assert whole.code == 2, whole.err
    assert str(state_dir / place) in whole.error["message"]

"""Names in /dev/shm that somebody else has taken: they stop nobody, and stay."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import rooms
from tests.support.second_user import as_second_user, needs_root

PLACE = Path(rooms.MEMORY) / f"snapstore-links-squat-{os.getpid()}"


def _folder(mode: int) -> None:
    PLACE.mkdir()
    (PLACE / "x").touch()
    PLACE.chmod(mode)


TAKE: dict[str, Callable[[], object]] = {
    "a file": PLACE.touch,
    "a link": lambda: PLACE.symlink_to("/etc"),
    "a link to itself": lambda: PLACE.symlink_to(PLACE),
    "a pipe": lambda: os.mkfifo(PLACE),
    "a folder": lambda: _folder(0o700),
    "a folder for all": lambda: _folder(0o777),
}


@pytest.fixture(autouse=True)
def cleaned() -> Iterator[None]:
    yield
    if PLACE.is_dir() and not PLACE.is_symlink():
        shutil.rmtree(PLACE)
    else:
        PLACE.unlink(missing_ok=True)


@needs_root
@pytest.mark.parametrize("what", TAKE)
def test_a_name_that_is_taken_stops_nobody_and_stays_h22(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "_YOUNG_S", -1)
    as_second_user(TAKE[what])
    before = PLACE.lstat()

    with rooms.open_rooms(None) as room:
        assert room.links.parent == rooms.MEMORY

    assert PLACE.lstat().st_ino == before.st_ino
    assert "folder" not in what or (PLACE / "x").exists()


def test_what_a_killed_run_has_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "_YOUNG_S", -1)
    PLACE.mkdir()
    (PLACE / "inner").mkdir()

    with rooms.open_rooms(None):
        assert not PLACE.exists()

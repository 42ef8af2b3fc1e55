"""A small file is read whole, or refused at once: nothing is waited for."""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.errors import CaptureError, SourceDamagedError, UnsafePathError
from snapstore.layouts.plain import SIDE_FILE, PlainLayout
from snapstore.model.regular_file import NotRegularError, read_regular, read_source
from snapstore.storages.local import LocalStorage
from tests.support.state_dirs import make_database


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Whoever waits for a pipe is woken after two seconds with a TimeoutError."""

    def wake(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(2)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_file_is_read_whole_and_an_empty_one_too(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", b"x" * 70_000):
        path.write_bytes(content)
        assert read_regular(path) == content
        assert read_source(path) == content


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "device", "too large"])
def test_anything_else_is_refused_at_once_and_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        (tmp_path / "other").touch()
        path.symlink_to(tmp_path / "other")
    elif kind == "device":
        path = Path("/dev/zero")
        assert stat.S_ISCHR(path.stat().st_mode)
    else:
        path.write_bytes(bytes(11))
    with pytest.raises(NotRegularError, match=str(path)):
        read_regular(path, limit_bytes=10)
    with pytest.raises(SourceDamagedError, match=str(path)):
        read_source(path, limit_bytes=10)


def test_a_missing_file_is_no_damaged_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError):
        read_source(tmp_path / "missing")
    with pytest.raises(NotADirectoryError):
        read_source(tmp_path / "file" / "below")


def test_a_pipe_in_the_place_of_a_plain_store_s_side_file_is_refused(tmp_path: Path) -> None:
    folder = make_database(tmp_path / "counts", {"default": {b"k": b"v"}})
    os.mkfifo(folder / SIDE_FILE)
    layout = PlainLayout()
    (location,) = layout.discover(folder, "shop").locations
    with pytest.raises(CaptureError, match="regular"):
        layout.noted_offsets(location)


def test_a_pipe_in_the_place_of_an_object_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "object")
    with pytest.raises(UnsafePathError, match="regular"):
        LocalStorage(str(tmp_path)).get("object", limit_bytes=9)

"""A second user of this machine, played by a child process; only root can start one."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

UID = GID = 54321

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 and os.environ.get("CI") != "true",
    reason="a second user can be played by root only",
)


def as_second_user(act: Callable[[], object], *, gid: int = GID) -> None:
    """Do something as that user, who is in one group only."""
    child = _fork(act, gid)
    _, status = os.waitpid(child, 0)
    assert status == 0, "the second user could not do that"


@contextmanager
def second_user_at_work(act: Callable[[], object]) -> Iterator[None]:
    """Let that user do something again and again meanwhile, whether it works or not."""
    begun, begin = os.pipe()

    def work() -> None:
        os.write(begin, b"x")
        while True:
            try:
                act()
            except OSError:
                continue

    child = _fork(work, GID)
    try:
        assert os.read(begun, 1) == b"x"
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(begun)
        os.close(begin)


@contextmanager
def common_ground() -> Iterator[Path]:
    """A folder of root's that everybody can reach, unlike those that pytest makes."""
    folder = Path(tempfile.mkdtemp(prefix="snapstore-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give_away(folder: Path) -> None:
    """Make a folder with all that is in it the second user's own."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UID, GID, follow_symlinks=False)


def _fork(act: Callable[[], object], gid: int) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(UID, UID, UID)
            act()
            code = 0
        finally:
            os._exit(code)
    return child

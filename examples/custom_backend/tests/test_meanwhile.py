"""An application may begin, end and remove its stores at any moment."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from snapstore_sqlite.backend import SQLiteBackend
from snapstore_sqlite.layout import SQLiteLayout
from snapstore_sqlite.store import Application

from snapstore.errors import StoreChangedError, StoreNotFoundError

CHANGELOG = "shop-counts-changelog:0"

_MOVE = """
import os, sys
folder = sys.argv[1]
print("begun", flush=True)
while True:
    os.rename(folder, folder + "-aside")
    os.rename(folder + "-aside", folder)
"""
_BEGIN_ANEW = """
import os, shutil, sys, time
from pathlib import Path
from snapstore_sqlite.store import Store
folder = Path(sys.argv[1])
print("begun", flush=True)
while True:
    shutil.rmtree(folder)
    store = Store(folder)
    for number in range(5):
        store.apply({b"%d" % number: b"x" * 4000}, sys.argv[2], number)
    time.sleep(0.002)
    store.close()
    time.sleep(0.002)
"""


@contextmanager
def meanwhile(script: str, *arguments: str) -> Iterator[None]:
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"begun\n"
            yield
            assert child.poll() is None
        finally:
            child.kill()


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    with Application(tmp_path, "shop") as application:
        for partition in (0, 1):
            application.store(partition, "counts").apply({b"0": b"one"}, CHANGELOG, 0)
    return tmp_path


def test_stores_are_found_while_a_partition_comes_and_goes(state_dir: Path) -> None:
    with meanwhile(_MOVE, str(state_dir / "shop" / "0")):
        tasks = Counter(
            one.store.task
            for _ in range(3000)
            for one in SQLiteLayout().discover(state_dir).locations
        )
    assert tasks["1"] == 3000


def test_a_store_that_is_begun_anew_is_taken_at_one_moment_or_not_at_all(state_dir: Path) -> None:
    (location, _) = SQLiteLayout().discover(state_dir).locations
    outcomes: Counter[str] = Counter()
    with meanwhile(_BEGIN_ANEW, str(location.path), CHANGELOG):
        for _ in range(300):
            try:
                with SQLiteBackend().capture(location) as capture:
                    families = capture.view.families("counts")
                    noted = (
                        capture.view.entries("counts", "offsets") if "offsets" in families else {}
                    )
                    held = capture.view.entries("counts", "entries") if noted else {}
                    assert len(held) == int(noted.get(CHANGELOG.encode(), -1)) + 1
                    outcomes["taken"] += 1
            except (StoreChangedError, StoreNotFoundError) as error:
                outcomes[error.code] += 1
    assert outcomes["taken"] > 10

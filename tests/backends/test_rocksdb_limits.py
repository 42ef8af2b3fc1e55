"""Rights, descriptors and large numbers of files."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import CaptureError
from snapstore.testing.backend_contract import materialise
from tests.support.rocksdb import PROJECT, locate, make_database, make_many_tables

_NOBODY = 65534
_CAPTURE = """
import resource, sys
from pathlib import Path
from snapstore.backends.rocksdb import RocksDBBackend
from tests.support.rocksdb import locate
soft, hard = int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
before = len(list(Path("/proc/self/fd").iterdir()))
with RocksDBBackend().capture(locate(Path(sys.argv[1]), "counts")) as capture:
    pinned = len(list(Path("/proc/self/fd").iterdir())) - before
    pairs = sum(1 for _ in capture.view.scan("counts", "default"))
    tables = [file for file in capture.files if file.name.endswith(".sst")]
    read = sum(len(file.source.pread(file.size, 0)) == file.size for file in tables)
after = len(list(Path("/proc/self/fd").iterdir()))
# Not ru_maxrss, which counts that of the process which started this one.
(line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in one]
peak = int(line.split()[1])
print(pinned, pairs, len(tables), read, after - before, peak)
"""


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@contextmanager
def _another_user() -> Iterator[None]:
    """Drop the rights of root where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _never(seconds: float) -> None:
    raise AssertionError("tried again")


@pytest.mark.parametrize("name", ["*.sst", "CURRENT", "MANIFEST-*", "."])
def test_an_unreadable_file_is_named_at_once(open_dir: Path, name: str) -> None:  # G35
    folder = make_database(open_dir / "counts", 500)
    victim = folder if name == "." else min(folder.glob(name))
    mode = victim.stat().st_mode
    victim.chmod(0)
    try:
        with (
            _another_user(),
            pytest.raises(CaptureError, match=victim.name) as caught,
            RocksDBBackend(sleep=_never).capture(locate(open_dir, "counts")),
        ):
            pass
    finally:
        victim.chmod(mode)
    assert "no right to read" in caught.value.message
    assert caught.value.facts["path"] == str(victim)


def test_the_right_to_read_is_enough(open_dir: Path) -> None:  # G34
    folder = make_database(open_dir / "counts", 500)
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    with _another_user(), tempfile.TemporaryDirectory() as copies:
        for copy_tables in (False, True):
            backend = RocksDBBackend(RocksDBBackend.Options(copy_tables=copy_tables))
            with backend.capture(locate(open_dir, "counts")) as capture:
                materialise(capture, Path(copies) / str(copy_tables))
        with RocksDBBackend().open_view(open_dir, "counts") as view:
            assert view.databases == ("counts",)
    folder.chmod(0o755)


def _capture_with_limit(task_dir: Path, soft: int, hard: int) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", _CAPTURE, str(task_dir), str(soft), str(hard)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.fixture(scope="module")
def many_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task_dir = tmp_path_factory.mktemp("many")
    make_many_tables(task_dir / "counts", 400)
    return task_dir


@pytest.mark.parametrize(
    ("soft", "hard", "at_least", "at_most"),
    [
        pytest.param(128, 4096, 800, 900, id="the soft limit is raised"),
        pytest.param(600, 600, 400, 600, id="held once, and opened a few at a time"),
        pytest.param(256, 256, 0, 200, id="copied, since the hard limit is too low"),
    ],
)
def test_any_limit_of_open_files_gives_the_same_capture(
    many_tables: Path, soft: int, hard: int, at_least: int, at_most: int
) -> None:
    pinned, pairs, tables, read, leaked, _ = _capture_with_limit(many_tables, soft, hard)
    assert (pairs, tables, read, leaked) == (400, 400, 400, 0)
    assert at_least <= pinned <= at_most


@pytest.mark.slow
def test_two_thousand_tables_are_captured_in_bounded_memory(tmp_path: Path) -> None:
    make_many_tables(tmp_path / "counts", 2000)
    _, pairs, tables, read, leaked, peak_kib = _capture_with_limit(tmp_path, 1024, 8192)
    assert (pairs, tables, read, leaked) == (2000, 2000, 2000, 0)
    assert peak_kib < 300 * 1024

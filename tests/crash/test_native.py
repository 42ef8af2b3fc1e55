"""A driver that crashes in native code takes the process with it; nothing half-made is listed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from snapstore import client
from tests.support.crash import PROJECT
from tests.support.mend_lab import uneven_state

_SNAPSHOT = """
import itertools, os, signal, sys
import snapstore
from snapstore.config import load_config
from snapstore.registry import Registry

class Crashing:
    calls = itertools.count(1)
    def inspect(self, changelog, *, now):
        if next(self.calls) == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGSEGV)
        from snapstore.errors import ChangelogGoneError
        raise ChangelogGoneError(f"{changelog} is not there")
    def close(self):
        pass

class Plugins(Registry):
    def changelog(self, bootstrap, properties):
        return Crashing()

config = load_config(
    env={"HOME": sys.argv[4], "SNAPSTORE_KAFKA_BOOTSTRAP": "nowhere:1"},
    overrides={"repository.url": (sys.argv[1], "test")},
)
with snapstore.open(config=config, registry=Plugins()) as repository:
    repository.snapshot(sys.argv[2])
"""


@pytest.mark.parametrize("call", [1, 3, 6])
def test_a_snapshot_of_a_process_that_crashes_is_none_h76(tmp_path: Path, call: int) -> None:
    state_dir = uneven_state(tmp_path / "state", (99, 99, 99))
    url = (tmp_path / "repository").as_uri()
    client.create(url, env={"HOME": str(tmp_path)}).close()
    ended = subprocess.run(
        [sys.executable, "-c", _SNAPSHOT, url, state_dir, str(call), tmp_path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == -signal.SIGSEGV, ended.stderr
    with client.open(url, env={"HOME": str(tmp_path)}) as repository:
        assert repository.list().snapshots == ()
        assert not repository.snapshot(state_dir).failed
        assert len(repository.list().snapshots) == 4
        assert repository.verify(read_data=True).sound

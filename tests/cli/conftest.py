"""The command line, run in this process as a person would run it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from snapstore.cli.main import run
from tests.support.fixtures import unpack


class Result(msgspec.Struct, frozen=True):
    """What one command line left: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return msgspec.json.decode(self.out)

    @property
    def error(self) -> Any:
        """The one JSON document on stderr."""
        return msgspec.json.decode(self.err)


Cli = Callable[..., Result]


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str],
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Cli:
    """Run one command line with an environment of its own, in an empty folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def call(*arguments: object, env: dict[str, str] | None = None) -> Result:
        capsys.readouterr()
        code = run(
            [str(each) for each in arguments], {"HOME": str(clean_environment), **(env or {})}
        )
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    """The state.dir of an application that was closed cleanly."""
    folder = tmp_path / "state"
    folder.mkdir()
    unpack("ks440-alos", folder)
    return folder


@pytest.fixture
def url(tmp_path: Path, cli: Cli) -> str:
    """An empty repository."""
    place = str(tmp_path / "repository")
    assert cli("init", "-r", place).code == 0
    return place


@pytest.fixture
def filled(url: str, state_dir: Path, cli: Cli) -> str:
    """A repository with one snapshot of every store of one task."""
    assert cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0").code == 0
    return url

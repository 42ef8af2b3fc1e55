"""The command line, run in this process as a person would run it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.cli.main import run
from tests.support.answer import Answer
from tests.support.fixtures import unpack

Cli = Callable[..., Answer]


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

    def call(*arguments: object, env: dict[str, str] | None = None) -> Answer:
        capsys.readouterr()
        code = run(
            [str(each) for each in arguments], {"HOME": str(clean_environment), **(env or {})}
        )
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

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

"""The examples that run before a start name a command that exists and does what they say."""

import shlex
from pathlib import Path

import pytest
import yaml

from snapstore.cli.main import run
from tests.support.mend_lab import uneven_state
from tests.support.streams_store import APPLICATION

EXAMPLES = Path(__file__).parents[2] / "examples" / "prepare"


def prepared(command: list[str], state_dir: Path, home: Path) -> int:
    """Run the command of an example on another state directory and without its surroundings."""
    assert command[:2] == ["snapstore", "prepare"]
    assert command[command.index("--application") + 1] == APPLICATION
    arguments = ["prepare", str(state_dir), *command[3:]]
    return run(arguments, {"HOME": str(home)})


@pytest.mark.slow
def test_the_init_container_mends_before_the_start(tmp_path: Path) -> None:
    document = yaml.safe_load((EXAMPLES / "init-container.yaml").read_text())
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["initContainers"]
    assert container["command"][2] == container["volumeMounts"][0]["mountPath"]
    assert {mount["name"] for each in pod["containers"] for mount in each["volumeMounts"]} == {
        container["volumeMounts"][0]["name"]
    }
    state_dir = uneven_state(tmp_path / "state")
    assert run(["fsck", str(state_dir)], {"HOME": str(tmp_path)}) == 6
    assert prepared(container["command"], state_dir, tmp_path) == 0
    assert run(["fsck", str(state_dir)], {"HOME": str(tmp_path)}) == 0


def test_the_drop_in_mends_before_the_start(tmp_path: Path) -> None:
    lines = (EXAMPLES / "prepare.conf").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("ExecStartPre=")]
    command = shlex.split(line.removeprefix("ExecStartPre=/usr/bin/env "))
    assert prepared(command, uneven_state(tmp_path / "state"), tmp_path) == 0

"""Every file below examples/ does what it says."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from snapstore.cli.main import snapstore
from tests.support.fixtures import unpack

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    unpack("ks440-alos", tmp_path / "state")
    return tmp_path / "state"


def run(command: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "PATH": tools},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def parses(arguments: Sequence[str]) -> None:
    """Check that a command line of ours has only options that exist."""
    group, command, rest = snapstore, None, list(arguments)
    context = snapstore.make_context("snapstore", rest, resilient_parsing=True)
    name, command, rest = group.resolve_command(context, rest)
    assert command is not None, arguments
    known = {option for param in command.params for option in param.opts}
    used = {part for part in rest if part.startswith("-")}
    assert used <= known, used - known
    assert name


@pytest.mark.slow
def test_the_quickstart_runs(state_dir: Path, tmp_path: Path) -> None:
    done = run(
        [EXAMPLES / "quickstart.sh", state_dir, tmp_path / "repository", tmp_path / "new"], tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "19 snapshots: 75 new files" in done.stdout
    assert "restored 19 stores" in done.stdout
    assert (tmp_path / "new/ks440-alos/1_0/rocksdb/count/CURRENT").exists()


@pytest.mark.slow
def test_the_library_example_runs(state_dir: Path, tmp_path: Path) -> None:
    done = run(
        [
            sys.executable,
            EXAMPLES / "library_usage.py",
            state_dir,
            tmp_path / "repository",
            tmp_path / "new",
        ],
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "refused (unchecked_changelog)" in done.stdout
    assert "reading goes on at" in done.stdout


@pytest.mark.slow
def test_the_drill_runs_against_an_s3_server(state_dir: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = run([EXAMPLES / "drill/ci_drill.sh", state_dir, "ks440-alos", port], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "drill: 19 of 19 stores came back at their offset" in done.stdout


def test_the_drill_fails_where_nothing_can_be_restored(tmp_path: Path) -> None:
    (tmp_path / "snapstore.yaml").write_text("repository: {url: nowhere}")
    assert run([EXAMPLES / "drill/restore_drill.sh", "orders"], tmp_path).returncode == 10


def test_shell_scripts_are_well_formed() -> None:
    scripts = sorted(EXAMPLES.rglob("*.sh"))
    assert scripts
    for script in scripts:
        assert os.access(script, os.X_OK), f"{script} cannot be run"
        checked = run(["bash", "-n", script], EXAMPLES)
        assert checked.returncode == 0, checked.stderr


def test_the_workflow_runs_scripts_that_exist() -> None:
    workflow = yaml.safe_load((EXAMPLES / "drill/workflow.yaml").read_text())
    commands = [
        step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step
    ]
    scripts = [shlex.split(command)[0] for command in commands if "examples/" in command]
    assert len(scripts) == 2
    checked_out = [script.removeprefix("snapstore/") for script in scripts]
    assert all((EXAMPLES.parent / script).is_file() for script in checked_out)


def test_snapstore_is_installed_from_a_checkout_and_never_by_a_name_that_is_not_ours_h45() -> None:
    project = EXAMPLES.parent
    folders = ("docs", "examples", "snapstore")
    files = [
        *project.glob("*.md"),
        *(file for each in folders for file in (project / each).rglob("*")),
    ]
    texts = [
        file.read_text("utf-8")
        for file in files
        if file.is_file() and file.suffix not in (".pyc", ".xz")
    ]
    lines = {line for text in texts for line in re.findall(r"pip install ([^\n`\"#&]*)", text)}
    assert len(lines) > 5
    for line in lines:
        for name in shlex.split(line.removesuffix(",").strip()):
            assert name.startswith(".") or name == "moto[server]", line


def test_the_crontab_has_five_fields_and_commands_that_parse() -> None:
    lines = (EXAMPLES / "crontab").read_text().splitlines()
    jobs = [line for line in lines if line and not re.match(r"#|\w+=", line)]
    verbs = set()
    for job in jobs:
        *fields, command = job.split(maxsplit=5)
        ranges = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
        for field, (least, most) in zip(fields, ranges, strict=True):
            assert re.fullmatch(r"\*(/\d+)?|\d+(-\d+)?(,\d+)*", field), field
            assert all(least <= int(number) <= most for number in re.findall(r"(?<!/)\d+", field))
        assert not re.search(r"(?<!\\)%", command), "cron takes a bare % for a new line"
        [line] = re.findall(r"\bsnapstore ([^>)]*)", command.replace("\\%", "%"))
        words = shlex.split(line)
        parses(words)
        verbs.add(words[0])
    assert verbs == {"snapshot", "prune", "verify", "status"}


def test_the_systemd_units_name_commands_that_parse(tmp_path: Path) -> None:
    unit = (EXAMPLES / "systemd/snapstore.service").read_text()
    [command] = re.findall(r"^ExecStart=/usr/bin/env snapstore (.*)$", unit, re.MULTILINE)
    parses(shlex.split(command))
    assert "Type=oneshot" in unit
    timer = (EXAMPLES / "systemd/snapstore.timer").read_text()
    assert "OnCalendar=*:0/10" in timer
    shared = (EXAMPLES / "systemd/snapstore@.service").read_text()
    [command] = re.findall(r"^ExecStart=/usr/bin/env snapstore (.*)$", shared, re.MULTILINE)
    timers = [path.stem.partition("@")[2] for path in (EXAMPLES / "systemd").glob("*@*.timer")]
    assert sorted(timers) == ["prune", "status", "verify"]
    for verb in timers:
        parses(shlex.split(command.replace("%i", verb)))
    if shutil.which("systemd-analyze") is not None:
        assert systemd_complaints(tmp_path) == []


def systemd_complaints(folder: Path) -> list[str]:
    """Return what systemd itself says of the units; it knows every setting."""
    units = [shutil.copy(unit, folder) for unit in (EXAMPLES / "systemd").iterdir()]
    checked = run(["systemd-analyze", "verify", "--man=no", *units], folder)
    return [line for line in checked.stderr.splitlines() if "snapstore." in line]

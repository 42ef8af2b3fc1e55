"""The log file is the only record that cron leaves: each run says there what it did."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def config(tmp_path: Path, url: str) -> Path:
    path = tmp_path / "logging.yaml"
    path.write_text(f"repository: {{url: '{url}'}}\nlogging: {{file: '{tmp_path / 'log'}'}}\n")
    return path


def test_a_good_run_tells_beginning_stores_sum_and_end_even_when_quiet_h51(
    cli: Cli, config: Path, state_dir: Path, tmp_path: Path
) -> None:
    line = ("snapshot", "-q", "-c", config, "--state-dir", state_dir, "--task", "1_0")
    assert cli(*line).code == 0
    told = (tmp_path / "log").read_text().splitlines()
    assert all(f" [{os.getpid()}] " in each for each in told)
    assert "began: snapstore snapshot -q -c" in told[0]
    assert any("INFO" in each and "ks440-alos/1_0/count: snapshot" in each for each in told)
    assert " new files, " in told[-2]
    assert told[-1].endswith("ended: exit code 0")


def test_a_failed_run_tells_the_error_with_its_hint_h51(
    cli: Cli, config: Path, tmp_path: Path
) -> None:
    failed = cli("snapshot", "-c", config, "--state-dir", "/nowhere")
    assert failed.code == 10
    told = (tmp_path / "log").read_text().splitlines()
    assert "ERROR" in told[-2]
    assert "error: the state directory /nowhere is not there" in told[-2]
    assert told[-1].endswith("ended: exit code 10")
    assert "ERROR" in told[-1]
    assert failed.err.count("/nowhere is not there") == 1, "told on the terminal by the log, too"


def test_as_json_each_line_is_an_object_h51(
    cli: Cli, config: Path, state_dir: Path, tmp_path: Path
) -> None:
    text = config.read_text()
    config.write_text(text.replace("logging: {", "logging: {format: json, level: debug, "))
    assert cli("snapshot", "-c", config, "--state-dir", state_dir, "--task", "1_0").code == 0
    assert cli("show", "abcdef123456", "-c", config, "--json").code == 10
    told = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    events = [each["event"] for each in told]
    assert events[0] == "began"
    assert events.count("began") == events.count("ended") == 2
    assert "store_started" in events
    stores = [each["store"] for each in told if each["event"] == "store_finished"]
    assert "ks440-alos/1_0/count" in stores
    [error] = [each for each in told if each["event"] == "error"]
    assert (error["level"], error["code"]) == ("error", "snapshot_not_found")
    assert told[-1]["exit_code"] == 10
    assert all(each["time"].endswith("Z") and each["pid"] for each in told)


def test_a_log_file_that_cannot_be_written_is_an_error_by_name(cli: Cli, config: Path) -> None:
    config.write_text("logging: {file: /nowhere/log}\n")
    failed = cli("config", "show", "-c", config)
    assert failed.code == 2
    assert "/nowhere/log" in failed.err

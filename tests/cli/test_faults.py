"""What goes wrong around a command: storages that refuse, signals, damage in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.moto import make_bucket, moto_server
from tests.support.streams_store import Pairs, make_key_value, some_pairs


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def s3_config(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A configuration for a bucket that is not there yet."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    path = tmp_path / "s3.yaml"
    path.write_text(
        "repository:\n"
        f"  url: s3://{tmp_path.name.replace('_', '-')[:40].strip('-')}/team a+b\n"
        f"  options: {{endpoint_url: '{endpoint}', region: us-east-1, max_attempts: 1}}\n"
        "  accept_unverified_uploads: true\n"
    )
    return path


def bucket_of(config: Path) -> str:
    return config.read_text().partition("s3://")[2].partition("/")[0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("init",),
        ("list",),
        ("snapshot", "--state-dir", "STATE"),
        ("restore", "--application", "ks440-alos", "--target", "new", "--if-exists"),
        ("verify",),
        ("delete", "abcd", "--yes"),
    ],
)
def test_a_missing_bucket_fails_every_command_with_one_line(
    cli: Cli, s3_config: Path, state_dir: Path, arguments: tuple[str, ...]
) -> None:
    """G102."""
    given = [state_dir if each == "STATE" else each for each in arguments]
    result = cli(*given, "-c", s3_config)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert bucket_of(s3_config) in result.err or "bucket" in result.err


@pytest.mark.slow
def test_snapshot_and_restore_work_on_s3(
    cli: Cli, s3_config: Path, endpoint: str, state_dir: Path
) -> None:
    make_bucket(endpoint, bucket_of(s3_config))
    assert cli("init", "-c", s3_config).code == 0
    taken = cli("snapshot", "-c", s3_config, "--state-dir", state_dir, "--task", "1_0", "--json")
    assert taken.code == 0, taken.err
    assert taken.document["new_files"] > 0
    back = ("restore", "--application", "ks440-alos", "--target", "new")
    assert cli(*back, "-c", s3_config, "--allow-unchecked-changelog").code == 0
    assert (Path("new") / "ks440-alos/1_0/rocksdb/count/CURRENT").exists()
    assert cli("verify", "--read-data", "-c", s3_config).code == 0


def test_a_restore_of_which_a_part_fails_is_3_with_the_report(
    cli: Cli, url: str, state_dir: Path
) -> None:
    for task in ("1_0", "1_1"):
        assert cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", task).code == 0
    files = cli("show", "ks440-alos/1_1/count", "--files", "-r", url, "--json").document[
        "file_list"
    ]
    [table] = [file for file in files if file["name"].endswith("000011.sst")]
    Path(url, "blobs", table["sha256"][:2], table["sha256"]).unlink()
    back = ("restore", "--application", "ks440-alos", "--target", "new", "-r", url)
    result = cli(*back, "--allow-unchecked-changelog", "--json")
    assert result.code == 3
    assert [item["store"] for item in result.document["items"]] == ["ks440-alos/1_0/count"]
    [failed] = result.document["failed"]
    assert table["sha256"] in failed["reason"]
    assert result.error["code"] == "partial_failure"
    assert "report" not in result.error["facts"]
    again = cli(*back, "--allow-unchecked-changelog", "--replace")
    assert again.code == 3
    assert "failed: " in again.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_snapshot_leaves_no_snapshot(
    cli: Cli, url: str, state_dir: Path, tmp_path: Path, number: int
) -> None:
    """G48, H59: exit code 130, nothing in the catalog, no unfinished file, nothing in the temporary
    folder; the next run completes."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "snapstore", "snapshot", "-r", url, "--json"]
    arguments = ["--state-dir", str(state_dir), "--task", "0_0", "versioned"]
    with subprocess.Popen(
        [*command, *arguments, "--limit-rate", "20KiB"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        wait_for_work(Path(url), process)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == b""
    assert b'"code":"interrupted"' in err
    assert not [*temporary.iterdir()]
    assert cli("list", "-r", url, "--json").document["items"] == []
    assert not [*Path(url, ".unfinished").glob("*")]
    assert cli("snapshot", "-r", url, *arguments).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "number"),
    [
        ("snapshot", signal.SIGTERM),
        ("verify", signal.SIGINT),
        ("open", signal.SIGTERM),
        ("restore", signal.SIGHUP),
    ],
)
def test_a_signal_ends_a_large_transfer_at_once_and_leaves_no_folder_h59(
    cli: Cli, url: str, tmp_path: Path, verb: str, number: signal.Signals
) -> None:
    """What is being read would take two minutes more at that rate. A service manager may send a
    second signal at once: it interrupts no cleaning up."""
    state = tmp_path / "large"
    content = Pairs(pairs=some_pairs(4000, size=8000), applied_offset=9)
    make_key_value(state, "0_0", "counts", content)
    if verb != "snapshot":
        assert cli("snapshot", "-r", url, "--state-dir", state).code == 0
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    arguments = {
        "snapshot": ["snapshot", "--state-dir", str(state)],
        "verify": ["verify", "--read-data"],
        "open": ["verify", "--open"],
        "restore": [
            *("restore", "--application", "orders", "--target", "new"),
            "--allow-unchecked-changelog",
        ],
    }[verb]
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "snapstore", *arguments),
            *("-r", url, "--json", "-v", "--limit-rate", "256KiB"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stderr is not None
        assert any(b'"moved":true' in line for line in process.stderr), "nothing was moved"
        sent = time.monotonic()
        process.send_signal(number)
        if number != signal.SIGINT:
            process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=60)
        took = time.monotonic() - sent
    assert process.returncode == 130, err
    assert not [*temporary.iterdir()]
    assert took < 10, "2 seconds on a machine with nothing else to do"


def wait_for_work(repository: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until something is being written below the repository."""
    deadline = time.monotonic() + 120
    while not [*repository.glob(".unfinished/*")]:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "the snapshot did not begin"
        time.sleep(0.02)


def test_the_way_out_of_a_rotten_blob_that_verify_names_is_one(
    cli: Cli, url: str, state_dir: Path
) -> None:
    only = ("-r", url, "--task", "0_0")
    assert cli("snapshot", "versioned", *only, "--state-dir", state_dir).code == 0
    blob = max(Path(url).rglob("blobs/*/*"), key=lambda path: path.stat().st_size)
    blob.chmod(0o600)
    blob.write_bytes(bytes(blob.stat().st_size))
    found = cli("verify", "--read-data", "-r", url)
    assert found.code == 4
    assert "hint: snapstore repair --read-data, and then take a new snapshot" in found.err
    assert cli("repair", "--read-data", "-r", url).code == 4
    assert cli("snapshot", "versioned", *only, "--state-dir", state_dir).code == 0
    assert cli("verify", "--read-data", "--open", "-r", url).code == 0

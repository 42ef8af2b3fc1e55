"""Nothing is loaded that the work at hand does not need."""

import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

DRIVERS = ("boto3", "botocore", "confluent_kafka", "rocksdict", "moto")


def loaded(program: str, *arguments: str, folder: Path) -> set[str]:
    """Run a program in a fresh interpreter; return the top-level modules it loaded."""
    tail = "\nimport sys; print('\\n'.join(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program + tail, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


CLI = (
    "import os, sys; from snapstore.cli.main import run; assert run(sys.argv[1:], os.environ) == 0"
)


def test_importing_the_library_loads_nothing_but_itself(tmp_path: Path) -> None:
    names = loaded("import snapstore", folder=tmp_path)
    assert names.isdisjoint({*DRIVERS, "click", "rich", "yaml", "msgspec", "zstandard"})


def test_opening_the_client_loads_no_driver(tmp_path: Path) -> None:
    names = loaded("import snapstore; snapstore.open", folder=tmp_path)
    assert names.isdisjoint({*DRIVERS, "click", "rich", "yaml"})


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("snapshot", "--help"),
        ("config", "show"),
        ("init", "-r", "repository"),
    ],
)
def test_these_load_no_driver_no_yaml_and_no_rich(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert loaded(CLI, *arguments, folder=tmp_path).isdisjoint({*DRIVERS, "rich", "yaml"})


def test_a_local_list_loads_no_driver_and_yaml_only_for_a_file(tmp_path: Path) -> None:
    loaded(CLI, "init", "-r", "repository", folder=tmp_path)
    arguments = ("list", "-r", "repository")
    names = loaded(CLI, *arguments, folder=tmp_path)
    assert names.isdisjoint({*DRIVERS, "rich", "yaml", "logging", "tempfile", "ctypes"})
    (tmp_path / "snapstore.yaml").write_text("repository: {url: repository}")
    names = loaded(CLI, "list", folder=tmp_path)
    assert "yaml" in names
    assert names.isdisjoint({*DRIVERS, "rich"})


@pytest.mark.slow
def test_a_run_in_which_nothing_changed_loads_no_driver_and_one_that_asks_opens_no_store(
    tmp_path: Path,
    moto_url: str,
    s3_credentials: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.support.moto import make_bucket
    from tests.support.streams_store import Pairs, make_key_value, some_pairs

    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    bucket = f"b{uuid.uuid4().hex}"
    make_bucket(moto_url, bucket)
    pairs = Pairs(pairs=some_pairs(10), applied_offset=9)
    make_key_value(tmp_path / "state", "0_0", "counts", pairs)
    (tmp_path / "snapstore.yaml").write_text("repository: {accept_unverified_uploads: true}")
    loaded(CLI, "init", "-r", f"s3://{bucket}/snapshots", folder=tmp_path)
    place = ("-r", f"s3://{bucket}/snapshots", "--state-dir", "state")
    run = ("snapshot", "-q", "--skip-unchanged", *place)
    time.sleep(2.1)  # a file that was written just now is not relied on
    assert {"botocore", "rocksdict"} <= loaded(CLI, *run, folder=tmp_path)
    assert loaded(CLI, *run, folder=tmp_path).isdisjoint({*DRIVERS, "rich"})
    (tmp_path / "asking.yaml").write_text(
        "{repository: {accept_unverified_uploads: true}, snapshot: {confirm_after: 0s}}"
    )
    loaded(CLI, *run, "-c", "asking.yaml", folder=tmp_path)
    names = loaded(CLI, *run, "-c", "asking.yaml", folder=tmp_path)
    assert "botocore" in names
    assert names.isdisjoint({"rocksdict", "confluent_kafka", "rich"})

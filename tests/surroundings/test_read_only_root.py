"""A read-only root file system, a uid without an entry and without a home: as in a container."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.fixtures import unpack

UID = 54321
_SCRIPT = f"""
set -e
work=$1; shift
mount --bind "$work" "$work"
for place in /tmp /var/tmp; do
  case $work in
    $place/*) ;;
    *) mount --bind "$place" "$place"; mount -o remount,bind,ro "$place" ;;
  esac
done
mount -o remount,bind,ro /
cd /
exec setpriv --reuid {UID} --regid {UID} --clear-groups --no-new-privs \
  --inh-caps -all,+dac_read_search --ambient-caps -all,+dac_read_search \
  env -i PATH="$PATH" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PYTHONPATH" "$@"
"""
"""The right to read everything stands for a Python that the other user could read."""


def _cannot() -> str | None:
    if os.geteuid() != 0:
        return "only root can make a file system read-only for others"
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "unshare and setpriv of util-linux are not there"
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-o", "remount,bind,ro", "/"], capture_output=True, text=True
    )
    return None if tried.returncode == 0 else f"no mount namespace: {tried.stderr.strip()}"


class Host:
    """Runs command lines where nothing can be written but below ``work``, and in memory."""

    def __init__(self, work: Path) -> None:
        self.work = work
        for name in ("state", "repository", "restored"):
            (work / name).mkdir()
        unpack("ks440-alos", work / "state")
        for path in [work, *work.rglob("*")]:
            os.chown(path, UID, UID)

    def __call__(self, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        settings = [f"{name}={value}" for name, value in env.items()]
        line = [*settings, sys.executable, "-m", "snapstore", *map(str, arguments)]
        return subprocess.run(
            [
                "unshare",
                "-m",
                "--propagation",
                "private",
                "sh",
                "-c",
                _SCRIPT,
                "sh",
                self.work,
                *line,
            ],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture
def host() -> Iterator[Host]:
    reason = _cannot()
    if reason is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    # Not in pytest's own folder, which is closed to other users.
    with TemporaryDirectory(prefix="read-only-root-") as folder:
        Path(folder).chmod(0o711)
        work = Path(folder, "work")
        work.mkdir()
        yield Host(work)


def test_every_verb_works_without_a_home_a_name_and_a_temporary_folder_h30_h31(host: Host) -> None:
    repository, state, target = (host.work / name for name in ("repository", "state", "restored"))
    on = ("-r", repository)
    for line in (
        ("init", *on),
        ("discover", "--state-dir", state),
        ("snapshot", *on, "--state-dir", state),
        ("snapshot", *on, "--state-dir", state, "--skip-unchanged"),
        ("list", *on),
        ("status", *on),
        ("verify", *on, "--read-data"),
        ("fsck", "--state-dir", state),
        ("prune", *on),
        (
            "restore",
            *on,
            "--application",
            "ks440-alos",
            "--target",
            target,
            "--allow-unchecked-changelog",
        ),
    ):
        done = host(*line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (target / "ks440-alos/1_0/rocksdb/count/CURRENT").is_file()


def test_verify_opens_stores_where_a_place_is_named_and_says_that_there_is_none_h30(
    host: Host,
) -> None:
    repository, state = host.work / "repository", host.work / "state"
    assert host("init", "-r", repository).returncode == 0
    taken = host("snapshot", "-r", repository, "--state-dir", state, "--task", "1_0")
    assert taken.returncode == 0, taken.stderr
    refused = host("verify", "--open", "-r", repository)
    assert refused.returncode not in (0, 1), refused.stderr
    assert "TMPDIR" in refused.stderr
    done = host("verify", "--open", "-r", repository, TMPDIR=str(host.work))
    assert done.returncode == 0, done.stderr
    done = host("verify", "--open", "-r", repository, "--scratch", host.work)
    assert done.returncode == 0, done.stderr
    cache = host.work / "cache"
    done = host("verify", "--open", "-r", repository, SNAPSTORE_CACHE_DIR=str(cache))
    assert done.returncode == 0, done.stderr
    assert not [*(cache / "scratch").iterdir()]


def test_a_path_below_a_home_that_is_not_known_is_told_h31(host: Host) -> None:
    done = host("list", "-r", "~/snapshots")
    assert done.returncode == 2, done.stderr
    assert "home directory of this user is not known" in done.stderr

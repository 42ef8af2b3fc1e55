"""A disk without any room, of a repository or of the cache.

In the repository, what frees room still works, and nothing else does.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.storages.local import LocalStorage
from snapstore.testing.disks import fill, small_disk
from tests.cli.conftest import Cli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]

_DISK_BYTES = 48 << 20


@pytest.fixture(params=["bytes", "inodes"])
def full(
    request: pytest.FixtureRequest, cli: Cli, tmp_path: Path, state_dir: Path
) -> Iterator[str]:
    """A repository with three snapshots of each store of a task; then its disk fills up."""
    with small_disk(tmp_path / "disk", _DISK_BYTES) as disk:
        url = str(disk / "repository")
        assert cli("init", "-r", url).code == 0
        for _ in range(3):
            assert cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0").code == 0
        if request.param == "bytes":
            fill(disk)
        else:
            state = os.statvfs(disk)
            used = f"remount,nr_inodes={state.f_files - state.f_ffree}"
            subprocess.run(["mount", "-o", used, str(disk)], check=True)
        refused = cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0")
        assert refused.code in (3, 12)
        assert "No space left on device" in refused.err + refused.out
        yield url


def test_snapshots_can_be_deleted_from_a_disk_that_is_full_h61(cli: Cli, full: str) -> None:
    before = len(cli("list", "--json", "-r", full).document["items"])

    for _ in range(2):
        deleted = cli("delete", "ks440-alos/count:0", "--yes", "-r", full)
        assert deleted.code == 0, deleted.err

    assert len(cli("list", "--json", "-r", full).document["items"]) == before - 2
    assert cli("verify", "-r", full).code == 0


def test_a_disk_that_is_full_can_be_pruned_h61(cli: Cli, full: str) -> None:
    for _ in range(3):
        pruned = cli("prune", "--keep-last", 1, "--json", "-r", full)
        assert pruned.code == 0, pruned.err

    listed = cli("list", "--json", "-r", full).document["items"]
    assert len({item["store"] for item in listed}) == len(listed)
    assert cli("verify", "--catalog", "-r", full).code == 0


def test_what_is_kept_back_is_no_object_and_is_made_again_h61(cli: Cli, url: str) -> None:
    reserve = Path(url) / ".reserve"
    kept = sorted(each.name for each in reserve.iterdir())
    assert len(kept) == 64
    assert all((reserve / name).stat().st_size == 4096 for name in kept)
    assert not [stat.key for stat in LocalStorage(url).list("") if "reserve" in stat.key]

    for piece in reserve.iterdir():
        piece.unlink()
    assert cli("prune", "-r", url).code == 0

    assert sorted(each.name for each in reserve.iterdir()) == kept
    assert cli("verify", "--catalog", "-r", url).code == 0


def test_a_full_cache_disk_costs_no_more_than_a_note_h59(
    cli: Cli, tmp_path: Path, state_dir: Path, url: str
) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        disk.chmod(0o700)
        fill(disk)
        env = {"SNAPSTORE_CACHE_DIR": str(disk / "cache")}
        # Hashes are kept of tables that have settled.
        for table in state_dir.rglob("*.sst"):
            os.utime(table, (1, 1))
        taken = cli("snapshot", "-r", url, "--state-dir", state_dir, "--task", "1_0", env=env)
        back = cli(
            "restore",
            *("-r", url, "--application", "ks440-alos", "--target", tmp_path / "new"),
            "--allow-unchecked-changelog",
            env=env,
        )
        sampled = cli("verify", "-r", url, "--read-data", "--sample", "50%", env=env)
        assert not any(path.stat().st_size for path in disk.rglob("*.json"))

    assert [taken.code, back.code, sampled.code] == [0, 0, 0], taken.err + back.err + sampled.err
    assert "No space left on device" in back.err
    assert "No space left on device" in sampled.err

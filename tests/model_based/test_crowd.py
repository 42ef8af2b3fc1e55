"""Four processes that save and two that prune, in one repository on a real S3 server."""

import json
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from snapstore.operations.verify import VerifyOptions, verify
from snapstore.operations.verify_repository import verify_repository
from snapstore.repository import Repository
from snapstore.storages.s3 import S3Options, S3Storage
from tests.support.crowd import STORES, open_crowded, utc_now
from tests.support.moto import make_bucket

PROJECT = Path(__file__).resolve().parents[2]
LONGEST_RUN = timedelta(seconds=8)


def crowd(endpoint: str, tmp_path: Path, seconds: float) -> tuple[Repository, Counter[str]]:
    """Let them at it; returns the repository and what they did in all."""
    bucket = f"crowd-{time.time_ns()}"
    make_bucket(endpoint, bucket)
    url = f"s3://{bucket}/shared"
    Repository.create(
        S3Storage(url, S3Options(endpoint_url=endpoint)),
        created_at=datetime.now(UTC),
        accept_unverified_uploads=True,
        longest_run=LONGEST_RUN,
    )
    started = []
    for number, kind in enumerate(["save"] * 4 + ["prune"] * 2):
        folder = tmp_path / f"{kind}{number}"
        folder.mkdir()
        arguments = [kind, url, endpoint, str(folder), str(seconds), f"{kind}{number}"]
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.support.crowd", *arguments],
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    repository = open_crowded(url, endpoint)
    ends = time.monotonic() + seconds
    looks = 0
    while time.monotonic() < ends:
        looks += 1
        require_sound(repository, read_data=False)
        time.sleep(2)
    seen: Counter[str] = Counter({"looks": looks})
    for process in started:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        seen.update(json.loads(out))
    return repository, seen


def require_sound(repository: Repository, *, read_data: bool) -> int:
    """Every snapshot that is listed, and still is after it was looked at, is whole."""
    listed = repository.catalog.list_all().snapshots
    report = verify(
        repository,
        listed,
        backends={},
        listener=lambda _: None,
        options=VerifyOptions(read_data=read_data, parallel=4),
    )
    still_listed = {each.id for each in repository.catalog.list_all().snapshots}
    damage = [each for each in report.damage if still_listed.intersection(each.snapshots)]
    assert not damage
    return len(listed)


def check(endpoint: str, tmp_path: Path, seconds: float) -> Counter[str]:
    repository, seen = crowd(endpoint, tmp_path, seconds)
    left = require_sound(repository, read_data=True)
    assert left >= len(STORES)
    assert verify_repository(repository, clock=utc_now).sound
    assert seen["stored"] > 20
    assert seen["deleted blobs"] > 0
    assert seen["unjudged"] == seen["failed"] == 0
    return seen


@pytest.mark.slow
@pytest.mark.usefixtures("s3_credentials")
def test_four_that_save_and_two_that_prune_leave_every_snapshot_whole(
    seaweedfs_url: str, tmp_path: Path
) -> None:
    check(seaweedfs_url, tmp_path, 60)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("s3_credentials")
def test_they_do_for_ten_minutes(seaweedfs_url: str, tmp_path: Path) -> None:
    check(seaweedfs_url, tmp_path, 600)

"""Four processes that save and two that prune, in one repository on a real S3 server."""

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
from tests.support.crowd import STOP, STORES, open_crowded, seen_by, utc_now
from tests.support.moto import make_bucket
from tests.support.processes import ChildProcess

PROJECT = Path(__file__).resolve().parents[2]
LONGEST_RUN = timedelta(seconds=12)
LEAST_STORED, LEAST_DELETED = 21, 1
PATIENCE_S = 300
"""How much longer they may go on until they have done that, on a busy machine."""


def crowd(endpoint: str, tmp_path: Path, seconds: float) -> tuple[Repository, Counter[str]]:
    """Let them at it for so long at least; returns the repository and what they did in all."""
    bucket = f"crowd-{time.time_ns()}"
    make_bucket(endpoint, bucket)
    url = f"s3://{bucket}/shared"
    Repository.create(
        S3Storage(url, S3Options(endpoint_url=endpoint)),
        created_at=datetime.now(UTC),
        accept_unverified_uploads=True,
        longest_run=LONGEST_RUN,
    )
    started = {}
    for number, kind in enumerate(["save"] * 4 + ["prune"] * 2):
        folder = tmp_path / f"{kind}{number}"
        folder.mkdir()
        arguments = [kind, url, endpoint, str(folder), f"{kind}{number}"]
        started[folder] = ChildProcess(
            ["env", "-C", str(PROJECT), sys.executable, "-m", "tests.support.crowd", *arguments],
            tmp_path / f"{kind}{number}.log",
        )
    repository = open_crowded(url, endpoint)
    began = time.monotonic()
    try:
        while (passed := time.monotonic() - began) < seconds + PATIENCE_S:
            require_sound(repository, read_data=False)
            assert all(process.running for process in started.values())
            seen = sum(map(seen_by, started), Counter[str]())
            enough = seen["stored"] >= LEAST_STORED and seen["deleted blobs"] >= LEAST_DELETED
            if enough and passed >= seconds:
                break
            time.sleep(2)
        (tmp_path / STOP).touch()
        for process in started.values():
            assert process.wait(120) == 0, process.tail()
    finally:
        for process in started.values():
            process.kill()
    return repository, sum(map(seen_by, started), Counter[str]())


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
    assert seen["stored"] >= LEAST_STORED
    assert seen["deleted blobs"] >= LEAST_DELETED
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

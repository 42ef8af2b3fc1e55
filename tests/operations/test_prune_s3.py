"""Pruning on S3: what lies beside the repository, unfinished uploads, refused deletions."""

import hashlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from snapstore.errors import ObjectNotFoundError
from snapstore.model.report import Event
from snapstore.model.retention import RetentionPolicy
from snapstore.model.store import BytesSource
from snapstore.operations.prune import PruneOptions, plan_prune, prune
from snapstore.operations.prune_report import PruneReport
from snapstore.operations.upkeep import Actor
from snapstore.repository import Repository, keys
from snapstore.storages.s3 import S3Options, S3Storage
from tests.support.moto import make_bucket

OPTIONS = PruneOptions(policy=RetentionPolicy(keep_last=1))
SOON = timedelta(seconds=6)


@pytest.fixture
def bucket(seaweedfs_url: str, s3_credentials: None) -> str:
    name = f"prune-{time.time_ns()}"
    make_bucket(seaweedfs_url, name)
    return name


@pytest.fixture
def client(seaweedfs_url: str, s3_credentials: None) -> Iterator[Any]:
    client = boto3.client("s3", endpoint_url=seaweedfs_url, region_name="us-east-1")
    yield client
    client.close()


@pytest.fixture
def repository(seaweedfs_url: str, bucket: str) -> Iterator[Repository]:
    """One whose longest run is short, so that there is something to delete soon after."""
    storage = S3Storage(f"s3://{bucket}/team/a", S3Options(endpoint_url=seaweedfs_url))
    yield Repository.create(
        storage,
        created_at=utc_now(),
        accept_unverified_uploads=True,
        longest_run=SOON,
    )
    storage.close()


def utc_now() -> datetime:
    return datetime.now(UTC)


def pruned(repository: Repository, run: str) -> PruneReport:
    events: list[Event] = []
    return prune(
        repository,
        OPTIONS,
        Actor(run=run, holder="tests"),
        clock=utc_now,
        listener=events.append,
    )


def orphan(repository: Repository, content: bytes) -> str:
    sha256 = hashlib.sha256(content).hexdigest()
    repository.storage.put_file(keys.blob(sha256), BytesSource(content), sha256=sha256)
    return keys.blob(sha256)


def await_age() -> None:
    """Longer than the longest run, its margin, and the whole seconds that S3 counts in."""
    time.sleep(SOON.total_seconds() * 1.25 + 2)


@pytest.mark.slow
def test_exactly_the_orphans_of_the_repository_go_and_nothing_beside_it_g43(
    repository: Repository, client: Any, bucket: str
) -> None:
    client.put_object(Bucket=bucket, Key="data/orphan", Body=b"x")
    client.put_object(Bucket=bucket, Key="team/ab/blobs/aa/" + "a" * 64, Body=b"x")
    for content in (b"one", b"two", b"three"):
        orphan(repository, content)
    await_age()
    first = pruned(repository, "p1")
    assert first.condemned.count == 3
    await_age()
    second = pruned(repository, "p2")
    assert (second.deleted_blobs.count, second.freed.size_bytes) == (3, 11)
    assert not [*repository.storage.list(keys.BLOBS)]
    left = {entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]}
    assert {"data/orphan", "team/ab/blobs/aa/" + "a" * 64} <= left


@pytest.mark.slow
def test_own_uploads_that_were_never_finished_are_aborted_foreign_ones_are_not_g70(
    repository: Repository, client: Any, bucket: str
) -> None:
    for key in ("team/a/blobs/aa/" + "a" * 64, "team/a/strange", "other/upload"):
        client.create_multipart_upload(Bucket=bucket, Key=key)
    assert plan_prune(repository, OPTIONS, clock=utc_now).aborted_uploads == 0
    await_age()
    assert plan_prune(repository, OPTIONS, clock=utc_now).aborted_uploads == 1
    assert pruned(repository, "p1").aborted_uploads == 1
    left = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert sorted(upload["Key"] for upload in left) == ["other/upload", "team/a/strange"]


@pytest.mark.slow
def test_a_run_that_finds_its_blob_swept_sends_it_again(
    repository: Repository, client: Any
) -> None:
    key = orphan(repository, b"again")
    await_age()
    pruned(repository, "p1")
    writer = repository.begin_run("r2")
    name = writer.put(BytesSource(b"again"), hashlib.sha256(b"again").hexdigest(), {}).name
    assert name.endswith(".r2")
    await_age()
    pruned(repository, "p2")
    with pytest.raises(ObjectNotFoundError):
        repository.storage.get(key, limit_bytes=100)
    assert repository.storage.get(keys.blob(name), limit_bytes=100) == b"again"

"""snapstore is killed while it works on a real application's directory; the next run finishes."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from tests.support.command import Command
from tests.support.moto import make_bucket
from tests.support.seaweedfs import ACCESS_KEY, SECRET_KEY
from tests.support.snapshot_answers import Taken, resume_offsets
from tests.support.streams_input import InputShape
from tests.support.streams_lab import StreamsLab
from tests.support.streams_progress import wait_until_logged
from tests.support.streams_raw import data_of, read_stores

pytestmark = pytest.mark.kafka

BUCKET = "interrupted"
STORES = ("plain", "table", "window")
SLOWLY = ("--limit-rate", "64KiB", "--parallel", "1")


def blobs(endpoint: str) -> Callable[[], int]:
    """Count what the bucket holds below blobs/."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    return lambda: client.list_objects_v2(Bucket=BUCKET, Prefix="here/blobs/")["KeyCount"]


def test_a_killed_snapshot_and_a_killed_restore_are_finished_by_the_next_run(
    lab: StreamsLab, tmp_path: Path, moto_url: str
) -> None:
    make_bucket(moto_url, BUCKET)
    stored_blobs = blobs(moto_url)
    snapstore = Command(
        tmp_path / "home",
        f"s3://{BUCKET}/here",
        options={"endpoint_url": moto_url, "region": "us-east-1"},
        keys={"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
    )
    snapstore("init", "--accept-unverified-uploads")  # this server believes every checksum
    topic = lab.new_topic()
    shape = InputShape(records=8000, keys=2000, value_size=100)
    lab.fill(topic, shape)
    app = lab.app(topic, version="4.2.1", stores=STORES, keys=2000, memtable=65536)
    run = app.start()
    run.wait_ready()
    load = lab.load(topic, dataclasses.replace(shape, records=1_000_000, rate=500, seed=2))
    wait_until_logged(app)

    snapshot = ("snapshot", "--state-dir", app.state_dir)
    snapstore.kill_when(lambda: stored_blobs() >= 2, *snapshot, *SLOWLY)
    listed = snapstore("list").document["items"]
    assert len(listed) < len(STORES) * 2
    for item in listed:
        assert snapstore("verify", item["id"], "--open").document["damage"] == []
    taken = Taken.of(snapstore(*snapshot).document)
    assert len(taken.stored) == len(STORES) * 2
    load.stop()
    wait_until_logged(app)
    run.close()
    assert not run.exceptions()

    shutil.rmtree(app.state_dir)
    target = ("--target", app.state_dir, "--allow-unchecked-changelog")
    restore = ("restore", "--application", app.application, *target)
    staged = app.directory / ".snapstore"
    snapstore.kill_when(lambda: any(staged.rglob("*.sst")), *restore, *SLOWLY)
    for folder in app.directory.glob("[0-9]_*"):  # whole, or not there at all
        assert {one.name for one in folder.iterdir()} == {".checkpoint", "rocksdb", "window"}
    assert len(list(app.directory.glob("[0-9]_*"))) < 2
    again = snapstore(*restore, "--replace").document
    assert not staged.exists()
    assert resume_offsets(again) == {
        place: (offset or 0) + 1 for place, offset in taken.stored.items()
    }

    started = app.run("running")
    starts = {(one.store, one.partition): one.start_offset for one in started.restore_starts()}
    for (task, store), offset in resume_offsets(again).items():
        assert starts[(store, int(task[-1]))] == offset
    rebuilt = dataclasses.replace(app, state_dir=tmp_path / "rebuilt", runs=app.runs)
    assert rebuilt.run("running").dump() == started.dump()
    wanted = read_stores(rebuilt.directory, tmp_path)
    held = read_stores(app.directory, tmp_path)
    assert {place: data_of(one) for place, one in held.items()} == {
        place: data_of(one) for place, one in wanted.items()
    }

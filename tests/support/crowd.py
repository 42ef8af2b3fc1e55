"""Processes that save, and processes that prune, all in one repository, until they are stopped.

    python -m tests.support.crowd save URL ENDPOINT FOLDER NAME
    python -m tests.support.crowd prune URL ENDPOINT FOLDER NAME

Each keeps in FOLDER/seen a JSON document of how often it did what, and ends once there is a file
``stop`` beside FOLDER.
"""

import json
import random
import shutil
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from snapstore.errors import RefusedError, RunInProgressError
from snapstore.model.report import Event
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.prune import PruneOptions, prune
from snapstore.operations.snapshot import SnapshotOptions, take_snapshots
from snapstore.operations.snapshot_plan import Selection, plan_snapshot
from snapstore.operations.snapshot_store import RunFacts
from snapstore.operations.upkeep import Actor
from snapstore.repository import HashCache, Repository
from snapstore.storages.s3 import S3Options, S3Storage
from tests.support.folder_store import FolderBackend, folder_layout, write_store

STORES = ("counts", "totals")
STOP = "stop"
_SEEN = "seen"
_CONTENTS = 30
_FILES = 6


def open_crowded(url: str, endpoint: str) -> Repository:
    return Repository.open(S3Storage(url, S3Options(endpoint_url=endpoint)))


def save(url: str, endpoint: str, folder: Path, name: str) -> None:
    """Save two stores again and again; some of their files change each time."""
    repository = open_crowded(url, endpoint)
    chance = random.Random(name)
    seen: Counter[str] = Counter()
    cache = HashCache(folder / "hashes")
    while _goes_on(folder, seen):
        store = chance.choice(STORES)
        layout = folder_layout(store)
        place = folder / store
        shutil.rmtree(place, ignore_errors=True)
        files = {
            f"{number}.sst": b"content %d " % chance.randrange(_CONTENTS) * 500
            for number in range(_FILES)
        }
        write_store(place, files, time.time_ns() // 1_000_000)
        seen["saves"] += 1
        report = take_snapshots(
            plan_snapshot(layout.discover(place), Selection()),
            repository,
            RunFacts(run=f"{name}x{seen['saves']}", instance=name, writer="tests"),
            SnapshotOptions(transfers=4),
            layout=layout,
            backends={"folder": FolderBackend()},
            clock=utc_now,
            listener=_nobody,
            cache=cache,
        )
        for outcome in report.outcomes:
            seen[outcome.status if outcome.error is None else outcome.error.code] += 1


def prune_often(url: str, endpoint: str, folder: Path, name: str) -> None:
    repository = open_crowded(url, endpoint)
    seen: Counter[str] = Counter()
    while _goes_on(folder, seen):
        try:
            report = prune(
                repository,
                PruneOptions(policy=RetentionPolicy(keep_last=3)),
                Actor(run=f"{name}x{seen['prunes']}", holder=name),
                clock=utc_now,
                listener=_nobody,
            )
        except RunInProgressError:
            seen["turned away"] += 1
            time.sleep(0.2)
            continue
        except RefusedError as error:
            seen[error.code] += 1
            continue
        seen["prunes"] += 1
        seen["removed"] += len(report.removed)
        seen["condemned"] += report.condemned.count
        seen["deleted blobs"] += report.deleted_blobs.count
        seen["unjudged"] += len(report.unjudged)
        seen["failed"] += len(report.failed)
        time.sleep(0.5)


def seen_by(folder: Path) -> Counter[str]:
    """Return how often the process of that folder did what so far."""
    path = folder / _SEEN
    return Counter(json.loads(path.read_text())) if path.exists() else Counter()


def _goes_on(folder: Path, seen: Counter[str]) -> bool:
    part = folder / f"{_SEEN}.part"
    part.write_text(json.dumps(seen))
    part.replace(folder / _SEEN)
    return not (folder.parent / STOP).exists()


def utc_now() -> datetime:
    return datetime.now(UTC)


def _nobody(event: Event) -> None:
    del event


if __name__ == "__main__":
    kind, url_, endpoint_, folder_, name_ = sys.argv[1:]
    work = {"save": save, "prune": prune_often}[kind]
    work(url_, endpoint_, Path(folder_), name_)

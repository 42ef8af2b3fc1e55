"""What is killed: a snapshot, a restore, a prune and a repair, each on a place made for it."""

import hashlib
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from snapstore.model.report import Event
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.prune import PruneOptions, prune
from snapstore.operations.repair import RepairOptions, repair
from snapstore.operations.snapshot import SnapshotOptions
from snapstore.operations.upkeep import Actor
from snapstore.repository import Repository, keys
from snapstore.storages.local import LocalStorage
from tests.support.folder_store import write_store
from tests.support.restore_lab import REPLACE, RestoreLab
from tests.support.snapshot_lab import SnapshotLab, content_of
from tests.support.streams_store import Pairs, make_key_value, make_window, some_pairs

FILES = {f"{name}.sst": name.encode() * 10_000 for name in "abcde"}
NIGHT = timedelta(hours=26)


def snapshot(folder: str) -> None:
    place = Path(folder)
    SnapshotLab(place).save(place / "counts", SnapshotOptions(transfers=1, parallel_stores=1))


def place_for_snapshot(folder: Path) -> None:
    """A store with a snapshot of two of its files."""
    state = write_store(folder / "counts", dict([*FILES.items()][:2]), 100)
    SnapshotLab(folder).save(state)
    write_store(state, FILES, 200)


def restore(folder: str) -> None:
    place = Path(folder)
    RestoreLab.reopened(place).restore(place / "target", options=REPLACE)


def place_for_restore(folder: Path) -> None:
    """Snapshots of two stores, and a target that holds others."""
    lab = RestoreLab(folder)
    source = folder / "source"
    make_key_value(source, "0_1", "counts", Pairs(pairs=some_pairs(200), applied_offset=900))
    segments = {1700000000000: Pairs(pairs=some_pairs(20), applied_offset=41)}
    make_window(source, "0_1", "windows", segments)
    lab.save(source)
    target = folder / "target"
    make_key_value(target, "0_1", "counts", Pairs(pairs=some_pairs(5), applied_offset=11))
    make_key_value(target, "0_1", "kept", Pairs(pairs=some_pairs(6), applied_offset=12))


def sweep(folder: str) -> None:
    prune(
        open_repository(Path(folder)),
        PruneOptions(policy=RetentionPolicy(keep_last=2), parallel=1),
        Actor(run=f"prune{time.monotonic_ns()}", holder="tests"),
        clock=utc_now,
        listener=_nobody,
    )


def place_for_sweep(folder: Path) -> None:
    """A repository in which one prune has everything to do that a prune can do."""
    lab = SnapshotLab(folder, cached=False)
    state = folder / "counts"
    for number in range(1, 9):
        write_store(state, {"a.sst": FILES["a.sst"], "b.sst": b"%d" % number * 5000}, number)
        lab.save(state)
        if number in (3, 4, 5, 6):
            sweep(str(folder))
            grow_old(folder, NIGHT)
    (folder / "repository" / ".unfinished" / "old").write_bytes(b"half of something")
    grow_old(folder, NIGHT)
    for name in ("y", "z"):
        blob = hashlib.sha256(name.encode()).hexdigest()
        lab.repository.storage.put(keys.blob(blob), name.encode())
    grow_old(folder, NIGHT)
    write_store(state, FILES, 9)
    lab.save(state)


def mend(folder: str) -> None:
    repair(
        open_repository(Path(folder)),
        RepairOptions(parallel=1),
        Actor(run=f"mend{time.monotonic_ns()}", holder="tests"),
        clock=utc_now,
        listener=_nobody,
    )


def place_for_mend(folder: Path) -> None:
    """One entry is lost, one is damaged, one has lost a blob, and one key is none."""
    lab = SnapshotLab(folder, cached=False)
    state = folder / "counts"
    for number in range(1, 5):
        write_store(state, {"a.sst": FILES["a.sst"], "b.sst": b"%d" % number * 5000}, number)
        lab.save(state)
    newest, second, *_ = lab.repository.catalog.list_all().snapshots
    storage = lab.repository.storage
    storage.delete([keys.entry(newest), keys.blob(hashlib.sha256(b"2" * 5000).hexdigest())])
    storage.put(keys.entry(second), b"{}")
    storage.put("catalog/orders/strange", b"?")
    grow_old(folder, NIGHT)


def open_repository(folder: Path) -> Repository:
    return Repository.open(LocalStorage((folder / "repository").as_uri()))


def grow_old(folder: Path, by: timedelta) -> None:
    """Let time pass: everything in the repository is older by that much.

    But for the entries: none was stored before it was captured.
    """
    repository = folder / "repository"
    for path in repository.rglob("*"):
        if path.is_file() and not path.is_relative_to(repository / "catalog"):
            modified = path.stat().st_mtime - by.total_seconds()
            os.utime(path, (modified, modified))


def require_whole(folder: Path) -> list[int | None]:
    """Read every listed snapshot; returns their offsets, the newest first."""
    repository = open_repository(folder)
    listing = repository.catalog.list_all()
    for listed in listing.snapshots:
        manifest = repository.manifests.load(listed.id)
        for file in manifest.files:
            content_of(repository, manifest, file.name)
    return [listed.applied_offset for listed in listing.snapshots]


def copied(template: Path, place: Path) -> Path:
    """Return a copy whose files are as old as those of the template."""
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(template, place, symlinks=True)
    return place


def utc_now() -> datetime:
    return datetime.now(UTC)


def _nobody(event: Event) -> None:
    del event

"""How the verbs grow: 10, 100 and 1,000 stores, tasks, files and catalog entries.

    python -m benchmarks.growth [LARGEST]

A row whose time grows much faster than its number is a defect: what is counted in
tests/operations/test_growth.py was found here.
"""

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from snapstore import client
from snapstore.config import load_config
from snapstore.model.identity import StoreId
from snapstore.model.retention import RetentionPolicy
from snapstore.model.snapshot import FileEntry
from snapstore.repository import keys
from tests.support.repository import NOON, describe, publish

KEEP_ALL = RetentionPolicy(keep_last=10**6)


def custom_stores(folder: Path, stores: int, tasks: int) -> Path:
    """Make tasks of custom stores, which to Kafka Streams 4.2 are known by their lines alone."""
    for task in range(tasks):
        task_dir = folder / "orders" / f"0_{task}"
        lines = []
        for store in range(stores):
            (task_dir / f"store{store}").mkdir(parents=True)
            (task_dir / f"store{store}" / "data").write_bytes(b"%d" % store)
            lines.append(f"orders-store{store}-changelog {task} {100 + store}\n")
        (task_dir / ".checkpoint").write_text(f"0\n{stores}\n{''.join(lines)}")
    return folder


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def on_disk(folder: Path, *, stores: int, tasks: int) -> dict[str, float]:
    state_dir = custom_stores(folder / "state", stores, tasks)
    config = load_config(env={}, overrides={"state.cache_dir": (str(folder / "cache"), "--cache")})
    times = {
        "discover": seconds(lambda: client.discover(state_dir, config=config)),
        "fsck": seconds(lambda: client.fsck(state_dir, config=config)),
    }
    with client.create((folder / "repository").as_uri(), config=config) as made:
        times["snapshot --dry-run"] = seconds(lambda: made.snapshot(state_dir, dry_run=True))
        times["snapshot"] = seconds(lambda: made.snapshot(state_dir))
        times |= of_catalog(made)
        times["restore --dry-run"] = seconds(
            lambda: made.restore(
                application="orders",
                target=folder / "target",
                dry_run=True,
                allow_unchecked_changelog=True,
            )
        )
    return times


def in_catalog(folder: Path, *, entries: int, files: int) -> dict[str, float]:
    config = load_config(env={}, overrides={"state.cache_dir": (str(folder / "cache"), "--cache")})
    with client.create((folder / "repository").as_uri(), config=config) as made:
        body = b"x"
        sha256 = hashlib.sha256(body).hexdigest()
        made.repository.storage.put(keys.blob(sha256), body)
        for number in range(entries):
            description = describe(
                StoreId("orders", f"0_{number % 10}", "counts"),
                offsets=(number,),
                captured_at=NOON + timedelta(minutes=number),
            )
            names = [f"rocksdb/counts/{file}.sst" for file in range(files)]
            publish(
                made.repository,
                description,
                tuple(
                    FileEntry(name=name, size=1, mode=0o644, sha256=sha256, blob=sha256)
                    for name in names
                ),
            )
        return of_catalog(made)


def of_catalog(made: client.Snapstore) -> dict[str, float]:
    return {
        "list": seconds(made.list),
        "status": seconds(made.status),
        "verify": seconds(made.verify),
        "prune --dry-run": seconds(lambda: made.prune(KEEP_ALL, dry_run=True)),
    }


def main(largest: int) -> None:
    steps = [number for number in (10, 100, 1000, 10_000) if number <= largest]
    rows: dict[tuple[str, str], list[float]] = {}
    for number in steps:
        for what, measure in (
            ("stores", lambda folder, n=number: on_disk(folder, stores=n, tasks=1)),
            ("tasks", lambda folder, n=number: on_disk(folder, stores=1, tasks=n)),
            ("entries", lambda folder, n=number: in_catalog(folder, entries=n, files=3)),
            ("files", lambda folder, n=number: in_catalog(folder, entries=1, files=n)),
        ):
            with tempfile.TemporaryDirectory() as folder:
                for verb, took in measure(Path(folder)).items():
                    rows.setdefault((what, verb), []).append(took)
    print("| of | verb | " + " | ".join(f"{number:,}" for number in steps) + " |")
    print("|---|---|" + "---|" * len(steps))
    for (what, verb), times in rows.items():
        print(f"| {what} | {verb} | " + " | ".join(f"{took:.2f} s" for took in times) + " |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)

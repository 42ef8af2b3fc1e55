"""Twice as many of anything is twice the work, counted in calls and not in seconds."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.backends.files import FilesBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout, checkpoint, task_stores
from snapstore.layouts.kafka_streams.tasks import read_task
from snapstore.model.manifest_rules import check_manifest
from snapstore.model.snapshot import FORMAT, FileEntry, Manifest, Snapshot
from snapstore.operations.discover import discover
from snapstore.operations.restore_plan import TaskTarget, Wanted, plan_task
from snapstore.operations.stopping import in_parallel
from tests.support.repository import describe
from tests.support.restore_lab import utc_now


class Calls:
    """How often a function was called."""

    def __init__(self) -> None:
        self.number = 0

    def counting(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **options: object) -> object:
            self.number += 1
            return function(*args, **options)

        return counted


def custom_stores(folder: Path, number: int) -> Path:
    """Make a task of so many custom stores, which to 4.2 are known by their lines alone."""
    task = folder / "orders" / "0_1"
    lines = []
    for each in range(number):
        (task / f"store{each}").mkdir(parents=True)
        (task / f"store{each}" / "data").write_bytes(b"x")
        lines.append(f"orders-store{each}-changelog 1 {100 + each}")
    (task / ".checkpoint").write_text("\n".join(["0", str(number), *lines]) + "\n")
    return folder


def work_of_discover(
    folder: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int, int]:
    lines, tasks, folders = Calls(), Calls(), Calls()
    layout = KafkaStreamsLayout()
    with monkeypatch.context() as patched, layout.watching_locks():
        patched.setattr(checkpoint, "_entry", lines.counting(checkpoint._entry))
        patched.setattr(task_stores, "read_task", tasks.counting(read_task))
        patched.setattr(task_stores, "_YOUNG_NS", 0)
        patched.setattr(os, "scandir", folders.counting(os.scandir))
        report = discover(
            custom_stores(folder, number),
            None,
            layout=layout,
            backends={"files": FilesBackend()},
            clock=utc_now,
        )
    assert len(report.stores) == number
    assert all(store.positions for store in report.stores)
    return lines.number, tasks.number, folders.number


def test_h58_discover_is_linear_in_the_stores_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = work_of_discover(tmp_path / "once", 30, monkeypatch)
    twice = work_of_discover(tmp_path / "twice", 60, monkeypatch)
    # Four threads may begin with the same question.
    assert once[1] <= 4
    assert twice[1] <= 4
    assert twice[0] <= 60
    assert twice[2] <= 2.5 * once[2]


def many_files(number: int, *, same_content: bool) -> Manifest:
    files = tuple(
        FileEntry(
            name=f"rocksdb/counts/d{each % 100}/{each}.sst",
            size=1,
            mode=0o644,
            sha256=f"{0 if same_content else each:064x}",
            blob=f"{0 if same_content else each:064x}",
        )
        for each in range(number)
    )
    return Manifest(format=FORMAT, description=describe(), files=files)


@pytest.mark.parametrize("same_content", [False, True])
@pytest.mark.timeout(60)
def test_h58_a_plan_of_100000_files_ends(tmp_path: Path, same_content: bool) -> None:
    """What grows with the square of the files would take more than an hour."""
    manifest = many_files(100_000, same_content=same_content)
    check_manifest(manifest)
    snapshot = Snapshot(
        format=FORMAT,
        id="a" * 64,
        description=manifest.description,
        files=len(manifest.files),
        size_bytes=0,
        new_files=0,
        new_bytes=0,
    )
    plan = plan_task(
        TaskTarget(task_dir=tmp_path / "0_1", free_bytes=1 << 60),
        [Wanted(snapshot=snapshot, manifest=manifest)],
        replace=False,
    )
    assert sum(len(fetch.names) for fetch in plan.stores[0].fetch) == 100_000


def test_h58_an_interrupt_gives_up_what_has_not_begun() -> None:
    begun: list[int] = []
    gate = threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        gate.wait()

    def interrupted() -> None:
        gate.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, range(10_000), parallel=2, tick=interrupted)
    assert len(begun) < 10_000

"""A first snapshot to S3, and its restore: everything is moved. Then a little changes."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from benchmarks.again import measure_changed
from benchmarks.contenders import OURS, Contender, contenders, ours_first
from benchmarks.lab import SYNC_BELOW, Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table, ratio_rows
from benchmarks.stores import TASKS, digests, make_application, require_restored, size_of

_FIRST = "first snapshot, SeaweedFS"
_RESTORE = "restore with every hash verified"
_DURABLE = "restore, until all is on the disk"


def measure_transfer(lab: Lab) -> tuple[list[Row], list[Table]]:
    """Each turn has a server of its own, so that nothing is there already."""
    sizes = lab.sizes
    source = lab.folder("large")
    make_application(
        source,
        [sizes.large_bytes] * (sizes.large_files // TASKS)
        + [sizes.small_bytes] * (sizes.small_files // TASKS),
    )
    files, size = size_of(source)
    wanted = digests(source)
    stored: dict[str, list[Cost]] = {}
    restored: dict[str, list[Cost]] = {}
    synced: dict[str, list[Cost]] = {}
    for number in range(lab.turns):
        with lab.server() as env:
            taking = contenders(lab, env, "first")
            taking = taking[number % len(taking) :] + taking[: number % len(taking)]
            for each in taking:
                stored.setdefault(each.name, []).append(each.store(source))
            for each in taking:
                cost, until_synced = _restore(lab, each, source, wanted)
                restored.setdefault(each.name, []).append(cost)
                name = each.name if each.name == OURS else f"{each.name}, then sync"
                synced.setdefault(name, []).append(until_synced)
            if number == lab.turns - 1:
                changed_rows, changed_tables = measure_changed(lab, source, taking)
    rows = ratio_rows(
        _FIRST,
        stored,
        OURS,
        [
            ("aws s3 sync", "wall", 0.85),
            ("aws s3 sync", "cpu", 0.7),
            ("s5cmd", "wall", 1.0),
            ("s5cmd", "cpu", 0.7),
            ("restic", "wall", 0.6),
            ("restic", "cpu", 0.2),
        ],
        lab.tools.missing,
    )
    rows += ratio_rows(
        _RESTORE,
        restored,
        OURS,
        [("aws s3 sync", "wall", 0.6), ("s5cmd", "wall", 1.0)],
        lab.tools.missing,
    )
    rows += ratio_rows(
        _DURABLE,
        synced,
        OURS,
        [("aws s3 sync, then sync", "wall", 0.6), ("s5cmd, then sync", "wall", 1.0)],
        {f"{name}, then sync": why for name, why in lab.tools.missing.items()},
    )
    what = f"{size / 1e9:.2f} GB in {files} files"
    tables = [
        Table(title=f"First snapshot: {what}", costs=ours_first(stored)),
        Table(
            title=f"Restore: {what}",
            costs=ours_first(restored),
            notes=("Snapstore alone makes what it wrote durable (fsync) before it ends.",),
        ),
        Table(title="The same until all of it is on the disk", costs=ours_first(synced)),
    ]
    shutil.rmtree(source)
    return [*changed_rows, *rows], [*changed_tables, *tables]


def _restore(
    lab: Lab, contender: Contender, source: Path, wanted: Mapping[str, str]
) -> tuple[Cost, Cost]:
    """Return what it cost, and the same with the time until its files are on the disk."""
    target = lab.folder("restored")
    cost = contender.restore(target)
    synced = cost
    if contender.name != OURS:
        sync = lab.run(lab.local_environment(), ["sh", "-c", SYNC_BELOW.format("$0"), target])
        synced = Cost(cost.wall_s + sync.wall_s, cost.cpu_s + sync.cpu_s, cost.peak_bytes)
    below = target / source.relative_to("/") if contender.name == "restic" else target
    require_restored(wanted, below)
    shutil.rmtree(target)
    return cost, synced

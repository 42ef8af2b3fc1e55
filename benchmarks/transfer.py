"""A first snapshot to S3, and its restore: everything is moved."""

import shutil
from pathlib import Path

from benchmarks.contenders import OURS, Contender, contenders
from benchmarks.lab import Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table, ratio_rows
from benchmarks.stores import TASKS, make_application, require_restored, size_of

_FIRST = "first snapshot, SeaweedFS"
_RESTORE = "restore with every hash verified"


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
    stored: dict[str, list[Cost]] = {}
    restored: dict[str, list[Cost]] = {}
    for number in range(lab.turns):
        with lab.server() as env:
            taking = contenders(lab, env, "first")
            taking = taking[number % len(taking) :] + taking[: number % len(taking)]
            for each in taking:
                stored.setdefault(each.name, []).append(each.store(source))
            for each in taking:
                restored.setdefault(each.name, []).append(_restore(lab, each, source))
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
    what = f"{size / 1e9:.2f} GB in {files} files"
    tables = [
        Table(title=f"First snapshot: {what}", costs=_sorted(stored)),
        Table(
            title=f"Restore: {what}",
            costs=_sorted(restored),
            notes=("Snapstore alone makes what it wrote durable (fsync) before it ends.",),
        ),
    ]
    shutil.rmtree(source)
    return rows, tables


def _restore(lab: Lab, contender: Contender, source: Path) -> Cost:
    target = lab.folder("restored")
    cost = contender.restore(target)
    below = target / source.relative_to("/") if contender.name == "restic" else target
    require_restored(source, below)
    shutil.rmtree(target)
    return cost


def _sorted(costs: dict[str, list[Cost]]) -> dict[str, list[Cost]]:
    return dict(sorted(costs.items(), key=lambda item: item[0] != OURS))

"""Runs that find most of their work done: nothing changed, and three tables changed."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from benchmarks.contenders import OURS, Contender, contenders, ours_first
from benchmarks.lab import Lab
from benchmarks.measure import Turn, alternate
from benchmarks.rows import Row, Table, ratio_rows
from benchmarks.stores import (
    TASKS,
    digests,
    make_application,
    require_restored,
    rewrite_a_table,
    size_of,
)

_UNCHANGED = "nothing changed, full CLI"
_CHANGED = "3 of 64 tables changed, full CLI"
_CHANGED_TARGETS: list[tuple[str, Literal["wall", "cpu"], float]] = [
    ("aws s3 sync", "wall", 0.6),
    ("s5cmd", "wall", 0.9),
]
_ALWAYS = "snapstore, a new snapshot all the same"
_UNCHANGED_TARGETS: list[tuple[str, Literal["wall", "cpu"], float]] = [
    ("aws s3 sync", "wall", 0.4),
    ("restic", "wall", 0.35),
    ("s5cmd", "wall", 1.5),
]


def measure_unchanged(lab: Lab) -> tuple[list[Row], list[Table]]:
    """Snapstore runs with --skip-unchanged, and without, so that it publishes a snapshot.

    It asks the repository in both.
    """
    source = lab.folder("many")
    make_application(source, [lab.sizes.many_bytes] * lab.sizes.many_files, tasks=1)
    files, _ = size_of(source)
    with lab.server() as env:
        taking = {each.name: each for each in contenders(lab, env, "many")}
        for each in taking.values():
            each.store(source)
            each.store(source)
        turns = {name: _storing(each, source) for name, each in taking.items()}
        turns[OURS] = lambda _: taking[OURS].store(source, "--skip-unchanged")
        turns[_ALWAYS] = lambda _: taking[OURS].store(source)
        costs = alternate(turns, lab.turns)
        target = lab.folder("restored")
        taking[OURS].restore(target)
        require_restored(digests(source), target)
        shutil.rmtree(target)
    shutil.rmtree(source)
    rows = ratio_rows(
        _UNCHANGED,
        costs,
        OURS,
        _UNCHANGED_TARGETS,
        lab.tools.missing,
    )
    return rows, [Table(title=f"Nothing changed: {files} files", costs=costs)]


def _storing(contender: Contender, source: Path) -> Turn:
    return lambda _: contender.store(source)


def measure_changed(
    lab: Lab, source: Path, taking: Sequence[Contender]
) -> tuple[list[Row], list[Table]]:
    """Change three tables of what every contender holds, again and again, and store it anew.

    Each of them sees the same changes.
    """
    tables = lab.sizes.large_files // TASKS

    def change(number: int) -> None:
        for task in range(3):
            rewrite_a_table(source, task, number % tables, number)

    turns = {each.name: _storing(each, source) for each in taking}
    costs = alternate(turns, lab.turns, before_round=change)
    target = lab.folder("restored")
    ours = next(each for each in taking if each.name == OURS)
    ours.restore(target)
    require_restored(digests(source), target)
    shutil.rmtree(target)
    rows = ratio_rows(_CHANGED, costs, OURS, _CHANGED_TARGETS, lab.tools.missing)
    return rows, [Table(title="Three tables of 64 changed", costs=ours_first(costs))]


def changed_unmeasured(why: str) -> list[Row]:
    """Return the targets with the reason why nothing was measured."""
    peers = [peer for peer, _, _ in _CHANGED_TARGETS]
    return ratio_rows(_CHANGED, {}, OURS, _CHANGED_TARGETS, dict.fromkeys(peers, why))

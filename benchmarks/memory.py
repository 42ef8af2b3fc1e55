"""The memory that it takes: with every run above, and with far more than this machine can hold."""

import json
from collections.abc import Mapping, Sequence

from benchmarks.lab import Lab
from benchmarks.measure import Cost
from benchmarks.rows import Row, Table
from benchmarks.tools import PROJECT

_LIMIT_MB = 100
_MB = 1 << 20


def measure_simulated(lab: Lab) -> tuple[list[Row], list[Table]]:
    """Take generated files through the pipeline that every snapshot takes; nothing is stored.

    A hundredth of it first: the difference is what grows with the amount.
    """
    env = {**lab.local_environment(), "PYTHONPATH": str(PROJECT)}
    python = lab.tools.paths["python"]
    costs: dict[str, list[Cost]] = {}
    for size in (lab.sizes.simulated_bytes // 100, lab.sizes.simulated_bytes):
        cost = lab.run(env, [python, "-m", "benchmarks.simulated", str(size)])
        files = json.loads((lab.work / "last.log").read_text())["files"]
        costs[f"{size / (1 << 30):.0f} GiB in {files} files, one of them of a third"] = [cost]
    small, large = (cost[0].peak_bytes / _MB for cost in costs.values())
    rows = [
        _row("100 GB simulated", large),
        Row(
            work="100 GB simulated",
            against="a hundredth of it",
            figure="peak memory",
            limit=1.1,
            measured=large / small,
        ),
    ]
    return rows, [Table(title="Generated files, hashed and read to be sent", costs=costs)]


def peak_row(tables: Sequence[Table]) -> Row | None:
    """Return the row on the largest memory that snapstore had in any of these."""
    peaks: Mapping[str, int] = {
        table.title: max(cost.peak_bytes for cost in costs)
        for table in tables
        for name, costs in table.costs.items()
        if name.startswith("snapstore")
    }
    if not peaks:
        return None
    title, peak = max(peaks.items(), key=lambda item: item[1])
    return _row("any run of snapstore", peak / _MB, title)


def _row(work: str, peak_mb: float, note: str = "") -> Row:
    return Row(
        work=work,
        against="-",
        figure="peak memory",
        limit=_LIMIT_MB,
        measured=peak_mb,
        unit="MB",
        note=note,
    )

"""The rows of the result: what was aimed at, what was measured."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from benchmarks.measure import Cost, median

_MIB = 1 << 20


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One target. ``measured`` None: it could not be measured, and ``note`` says why."""

    work: str
    against: str
    figure: str
    limit: float
    measured: float | None
    unit: str = ""
    wanted: Literal["at most", "at least"] = "at most"
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        good = (
            self.measured <= self.limit if self.wanted == "at most" else self.measured >= self.limit
        )
        return "met" if good else "missed"


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What every contender took for one piece of work."""

    title: str
    costs: Mapping[str, Sequence[Cost]]
    notes: tuple[str, ...] = ()


def ratio_rows(
    work: str,
    costs: Mapping[str, Sequence[Cost]],
    ours: str,
    targets: Iterable[tuple[str, Literal["wall", "cpu"], float]],
    missing: Mapping[str, str],
) -> list[Row]:
    """Compare ours with each peer; ``targets`` are (peer, figure, most that the ratio may be)."""
    rows = []
    for peer, figure, limit in targets:
        measured = None
        if peer in costs:
            mine, other = median(costs[ours]), median(costs[peer])
            measured = mine.wall_s / other.wall_s if figure == "wall" else mine.cpu_s / other.cpu_s
        rows.append(
            Row(
                work=work,
                against=peer,
                figure=figure,
                limit=limit,
                measured=measured,
                note=missing.get(peer, ""),
            )
        )
    return rows


def rows_as_markdown(rows: Iterable[Row]) -> str:
    lines = [
        "| work | against | figure | target | measured | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        sign = "<=" if row.wanted == "at most" else ">="
        unit = f" {row.unit}" if row.unit else ""
        measured = "-" if row.measured is None else f"{row.measured:.2f}{unit}"
        note = f" ({row.note})" if row.note else ""
        lines.append(
            f"| {row.work} | {row.against} | {row.figure} | {sign} {row.limit:g}{unit} "
            f"| {measured} | {row.verdict}{note} |"
        )
    return "\n".join(lines)


def table_as_markdown(table: Table) -> str:
    lines = [
        f"### {table.title}",
        "",
        "| | wall s, median (least to most) | CPU s, median | peak memory MB |",
        "|---|---|---|---|",
    ]
    for name, costs in table.costs.items():
        middle = median(costs)
        walls = sorted(cost.wall_s for cost in costs)
        lines.append(
            f"| {name} | {middle.wall_s:.2f} ({walls[0]:.2f} to {walls[-1]:.2f}) "
            f"| {middle.cpu_s:.2f} | {middle.peak_bytes / _MIB:.0f} |"
        )
    lines += ["", *table.notes] if table.notes else []
    return "\n".join(lines)

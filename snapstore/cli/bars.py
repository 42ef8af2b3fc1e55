"""A bar for every store under way, and one for all of them, on a terminal."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from snapstore.cli.narrow import wrapped
from snapstore.cli.reporter import Reporter
from snapstore.cli.text import plain
from snapstore.cli.totals import Told, Totals
from snapstore.model.report import Advanced, Planned, StoreFinished, StoreStarted
from snapstore.model.units import count, format_duration, format_size

_WIDE, _NARROW = 120, 90
"""Columns of a terminal: for a long bar, and for any."""


class Bars(Reporter):
    """Shows bytes or records done, the rate, and the time left."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(redact)
        console = Console(stderr=True)
        self._progress = Progress(
            *_columns(console.width),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._total: TaskID | None = None
        self._totals = Totals(time.monotonic)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._progress.stop()

    @property
    def tasks(self) -> list[Task]:
        """The bars that are shown now."""
        return self._progress.tasks

    def _show(self, event: Told) -> None:
        self._totals.take(event)
        match event:
            case Planned():
                pass
            case StoreStarted():
                self._start(str(event.store), event)
            case Advanced():
                task = self._tasks.get(str(event.store))
                if task is not None:
                    self._advance(task, event)
            case StoreFinished():
                self._remove(str(event.store))
        self._show_total()

    def _show_total(self) -> None:
        totals = self._totals
        if self._total is None and totals.total:
            self._total = self._progress.add_task("total", unit="bytes")
        if self._total is not None:
            stores = f" ({totals.finished} of {totals.stores} stores)" if totals.stores else ""
            self._progress.update(
                self._total,
                description=f"total{stores}",
                total=totals.total,
                completed=totals.done,
                moved=totals.moved,
            )

    def _start(self, name: str, event: StoreStarted) -> None:
        self._remove(name)
        self._tasks[name] = self._progress.add_task(
            f"{event.stage} {plain(name)}", total=event.total, unit=event.unit
        )

    def _advance(self, number: TaskID, event: Advanced) -> None:
        task = next(each for each in self._progress.tasks if each.id == number)
        moved = task.fields.get("moved", 0) + (event.amount if event.moved else 0)
        self._progress.update(number, advance=event.amount, moved=moved)

    def _remove(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            self._progress.remove_task(task)

    def _write(self, line: str) -> None:
        console = self._progress.console
        for part in wrapped(plain(self._redact(line)), console.width):
            console.print(part, markup=False, highlight=False, soft_wrap=True)


def _columns(width: int) -> list[ProgressColumn]:
    """Return what fits a terminal: the bar goes first, and a long name is shortened."""
    name = TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
    )
    bar = [BarColumn(bar_width=30 if width >= _WIDE else 10)] if width >= _NARROW else []
    return [name, *bar, _Amount(_whole()), _Rate(_whole()), _Left()]


def _whole() -> Column:
    """A number that is cut is a wrong number."""
    return Column(no_wrap=True, min_width=12)


class _Amount(ProgressColumn):
    """How much is done, and of how much."""

    def render(self, task: Task) -> Text:
        done = _spelled(task, task.completed)
        return Text(done if task.total is None else f"{done} of {_spelled(task, task.total)}")


class _Rate(ProgressColumn):
    """How much a second, over all the time that it has taken.

    Over the last moments it would jump with every piece, and go beyond a limit that holds.
    """

    def render(self, task: Task) -> Text:
        rate = shown_rate(task)
        return Text("" if rate is None else f"{_spelled(task, rate)}/s")


class _Left(ProgressColumn):
    """How much time it will take at that rate."""

    def render(self, task: Task) -> Text:
        rate = shown_rate(task)
        if not rate or task.remaining is None:
            return Text("")
        return Text(f"{format_duration(task.remaining / rate)} left")


def shown_rate(task: Task) -> float | None:
    """Return what was moved a second; None as long as nothing was."""
    moved = task.fields.get("moved", 0)
    return moved / task.elapsed if moved and task.elapsed else None


def _spelled(task: Task, amount: float) -> str:
    if task.fields.get("unit") == "records":
        return count(round(amount), "record")
    return format_size(int(amount))

"""Show how the work goes: bars on a terminal, a line now and then elsewhere, or nothing."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import click
import msgspec

from snapstore.cli.document import encode
from snapstore.cli.text import plain
from snapstore.model.report import Advanced, Event, Noted, StoreFinished, StoreStarted
from snapstore.model.units import format_size

if TYPE_CHECKING:
    from rich.progress import Task, TaskID

EVERY_SECONDS: Final = 10.0


class Reporter:
    """A listener that is silent but for notes, which it keeps. Base of the others."""

    def __init__(self, redact: Callable[[str], str], *, tell_notes: bool = True) -> None:
        self.notes: list[str] = []
        self._redact = redact
        self._tell_notes = tell_notes
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Take an event; called from any thread."""
        with self._lock:
            if isinstance(event, Noted):
                self.notes.append(event.message)
                if self._tell_notes:
                    self._write(f"note: {event.message}")
            else:
                self._show(event)

    def _show(self, event: StoreStarted | Advanced | StoreFinished) -> None:
        del event

    def _write(self, line: str) -> None:
        click.echo(plain(self._redact(line)), err=True)


class JsonLines(Reporter):
    """Every event as one line of JSON on stderr."""

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Noted):
                self.notes.append(event.message)
            body = {"kind": "event", "event": type(event).__name__, **msgspec.structs.asdict(event)}
            click.echo(self._redact(encode(body)), err=True)


class Lines(Reporter):
    """One line every ten seconds, for a log file."""

    def __init__(
        self,
        redact: Callable[[str], str],
        *,
        clock: Callable[[], float] = time.monotonic,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        super().__init__(redact)
        self._clock = clock
        self._every = every_seconds
        self._next = clock() + every_seconds
        self._running: dict[str, tuple[int, int | None, str]] = {}
        self._finished = 0

    def _show(self, event: StoreStarted | Advanced | StoreFinished) -> None:
        name = str(event.store)
        match event:
            case StoreStarted():
                self._running[name] = (0, event.total, event.unit)
            case Advanced():
                done, total, unit = self._running.get(name, (0, None, "bytes"))
                self._running[name] = (done + event.amount, total, unit)
            case StoreFinished():
                self._running.pop(name, None)
                self._finished += 1
        if self._clock() >= self._next:
            self._next = self._clock() + self._every
            states = [f"{store} {_state(*state)}" for store, state in self._running.items()]
            self._write(f"{self._finished} done; {', '.join(states) or 'nothing under way'}")


class Bars(Reporter):
    """A bar for every store under way, and one for all of them, on a terminal."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(redact)
        # Imported here: most command lines are over before rich is loaded.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._total: TaskID | None = None
        self._expected = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    @property
    def tasks(self) -> "list[Task]":
        """The bars that are shown now."""
        return self._progress.tasks

    def _show(self, event: StoreStarted | Advanced | StoreFinished) -> None:
        name = str(event.store)
        match event:
            case StoreStarted():
                self._start(name, event)
            case Advanced():
                for task in (self._tasks.get(name), self._total):
                    if task is not None:
                        self._progress.advance(task, event.amount)
            case StoreFinished():
                task = self._tasks.pop(name, None)
                if task is not None:
                    self._progress.remove_task(task)

    def _start(self, name: str, event: StoreStarted) -> None:
        earlier = self._tasks.pop(name, None)
        if earlier is not None:
            self._progress.remove_task(earlier)
        label = f"{event.stage} {plain(name)}"
        self._tasks[name] = self._progress.add_task(label, total=event.total)
        if event.total is not None and event.unit == "bytes":
            self._expected += event.total
            if self._total is None:
                self._total = self._progress.add_task("total", total=0)
            self._progress.update(self._total, total=self._expected)

    def _write(self, line: str) -> None:
        self._progress.console.print(plain(self._redact(line)), markup=False, highlight=False)


def choose_reporter(
    *,
    json: bool,
    quiet: bool,
    verbose: int,
    no_progress: bool,
    redact: Callable[[str], str],
) -> Reporter:
    """Return the way of showing progress that fits the options and the terminal."""
    if json:
        return JsonLines(redact) if verbose else Reporter(redact, tell_notes=False)
    if quiet or no_progress:
        return Reporter(redact, tell_notes=not quiet)
    return Bars(redact) if sys.stderr.isatty() else Lines(redact)


def _state(done: int, total: int | None, unit: str) -> str:
    if unit == "records":
        return f"{done:,} of {total:,} records" if total else f"{done:,} records"
    return f"{format_size(done)} of {format_size(total)}" if total else format_size(done)

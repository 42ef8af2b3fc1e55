"""Show how the work goes: bars on a terminal, a line now and then elsewhere, or nothing."""

import sys
import time
from collections.abc import Callable
from typing import Final

import click
import msgspec

from snapstore.cli.document import encode
from snapstore.cli.reporter import Reporter
from snapstore.cli.totals import Told, Totals
from snapstore.model.report import Advanced, Event, Noted, Planned, StoreFinished, StoreStarted
from snapstore.model.units import count, format_duration, format_size

EVERY_SECONDS: Final = 10.0


class JsonLines(Reporter):
    """Every event as one line of JSON on stderr."""

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.log(event)
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
        self._running: dict[str, _Running] = {}
        self._totals = Totals(clock)

    def _show(self, event: Told) -> None:
        self._totals.take(event)
        if isinstance(event, Planned):
            return
        name = str(event.store)
        match event:
            case StoreStarted():
                self._running[name] = _Running(event.total, event.unit, self._clock())
            case Advanced():
                running = self._running.setdefault(name, _Running(None, "bytes", self._clock()))
                running.done += event.amount
            case StoreFinished():
                self._running.pop(name, None)
        if self._clock() >= self._next:
            self._next = self._clock() + self._every
            now = self._clock()
            states = [f"{store} {state.spelled(now)}" for store, state in self._running.items()]
            self._write(f"{self._totals.spelled()}; {', '.join(states) or 'nothing under way'}")


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
    if not sys.stderr.isatty():
        return Lines(redact)
    # Imported here: most command lines are over before rich is loaded.
    from snapstore.cli.bars import Bars

    return Bars(redact)


class _Running(msgspec.Struct):
    """A store under way, since ``began`` by the monotonic clock."""

    total: int | None
    unit: str
    began: float
    done: int = 0

    def spelled(self, now: float) -> str:
        if self.unit != "records":
            done = format_size(self.done)
            return done if self.total is None else f"{done} of {format_size(self.total)}"
        if self.total is None:
            return count(self.done, "record")
        left = max(0, self.total - self.done)
        rate = self.done / (now - self.began) if now > self.began else 0.0
        ahead = f", {format_duration(left / rate)} to go" if rate else ""
        return (
            f"{self.done:,} of {count(self.total, 'record')}, {left:,} behind, {rate:,.0f}/s{ahead}"
        )

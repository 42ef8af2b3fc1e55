"""A listener to an operation that tells its notes; base of those that show how it goes."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import click

from snapstore.cli.folding import Folded
from snapstore.cli.text import plain
from snapstore.cli.totals import Told
from snapstore.model.report import Event, Noted, nobody


class Reporter:
    """A listener that is silent but for notes, each told once and kept. Base of the others."""

    def __init__(self, redact: Callable[[str], str], *, tell_notes: bool = True) -> None:
        self.notes: list[str] = []
        self._redact = redact
        self._tell_notes = tell_notes
        self._folded = Folded(lambda message: self._write(f"note: {message}"))
        self._lock = threading.Lock()
        self.log: Callable[[Event], None] = nobody

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._tell_notes:
            self._folded.end()

    def __call__(self, event: Event) -> None:
        """Take an event; called from any thread."""
        with self._lock:
            self.log(event)
            if not isinstance(event, Noted):
                self._show(event)
            elif event.message not in self.notes:
                self.notes.append(event.message)
                if self._tell_notes:
                    self._folded.tell(event.message)

    def _show(self, event: Told) -> None:
        del event

    def _write(self, line: str) -> None:
        click.echo(plain(self._redact(line)), err=True)

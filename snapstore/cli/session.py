"""One run of the command line: its global options, its configuration and its answer."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from snapstore.cli.folding import Folded
from snapstore.cli.narrow import fitted, width_of, wrapped
from snapstore.cli.redact import Redactor
from snapstore.cli.text import plain
from snapstore.errors import UnavailableError

if TYPE_CHECKING:
    from snapstore.cli.reporter import Reporter
    from snapstore.config import Config
    from snapstore.model.report import Event


class Session:
    """Holds what all commands share. Global options may arrive before and after the verb."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.redact = Redactor(env)
        self.json = False
        self.quiet = False
        self.no_progress = False
        self.verbose = 0
        self.config_file: str | None = None
        self.repository: str | None = None
        self.arguments: Sequence[str] = ()
        self.notes: list[str] = []
        self._folded = Folded(self._write_note)
        self._logs = False
        self._began = time.monotonic()
        self._reporter: Reporter | None = None

    def set_global(self, name: str, value: Any) -> None:
        """Take a global option; ``-v`` before and after the verb add up."""
        if name == "verbose":
            self.verbose += value
        elif name == "config":
            self.config_file = value
        else:
            setattr(self, name, value)

    def config(self, overrides: Mapping[str, tuple[object, str]] | None = None) -> "Config":
        """Return the configuration in force; options that were not given are None and ignored."""
        # Imported here: help and version need no configuration.
        from snapstore.config import load_config

        given = {key: item for key, item in (overrides or {}).items() if item[0] is not None}
        if self.repository is not None:
            given["repository.url"] = (self.repository, "--repository")
        config = load_config(self.config_file, env=self.env, overrides=given)
        self.redact.learn(config)
        # Of the library only the Kafka client has lines for a log.
        if config.kafka.bootstrap is not None or config.logging.file is not None or self.verbose:
            from snapstore.cli.logs import configure

            configure(config.logging, verbose=self.verbose, quiet=self.quiet, redact=self.redact)
            if config.logging.file is not None and not self._logs:
                self._logs = True
                line = " ".join(("snapstore", *map(plain, self.arguments)))
                self.log("info", "began", f"began: {line}", arguments=self.arguments)
        for note in config.notes:
            self.note(note)
        return config

    def log(self, level: str, event: str, message: str, **facts: object) -> None:
        """Write a line to the configured log file; nothing where none is."""
        if self._logs:
            from snapstore.cli.logs import tell

            tell(level, event, message, **facts)

    @contextmanager
    def reporting(self) -> Iterator["Reporter"]:
        """Yield the listener that shows how the work goes, in the way that fits the output."""
        from snapstore.cli.progress import choose_reporter

        reporter = choose_reporter(
            json=self.json,
            quiet=self.quiet,
            verbose=self.verbose,
            no_progress=self.no_progress,
            redact=self.redact,
        )
        reporter.log = self._logged
        with reporter:
            self._reporter = reporter
            try:
                yield reporter
            finally:
                self._reporter = None
        self.notes.extend(reporter.notes)

    def _logged(self, event: "Event") -> None:
        """Write what an operation tells to the log file."""
        from snapstore.model.report import Noted, StoreFinished, StoreStarted

        match event:
            case StoreStarted():
                self.log("debug", "store_started", f"{event.store}: {event.stage} begins")
            case StoreFinished():
                level = "info" if event.ok else "error"
                told = f"{event.store}: {event.outcome}"
                self.log(level, "store_finished", told, store=str(event.store), ok=event.ok)
            case Noted():
                self.log("warning", "note", event.message)

    def answer(self, kind: str, body: Mapping[str, object], lines: Sequence[str]) -> None:
        """Print the answer to a question: ``body`` as JSON, or ``lines``."""
        self._folded.end()
        self.log("info", "answer", lines[-1] if lines else kind, kind=kind)
        if self.json:
            from snapstore.cli.document import encode

            document = {"kind": kind, "version": 1, **body}
            if self.notes:
                document["notes"] = self.notes
            lines = [encode(document)]
        width = None if self.json else width_of(sys.stdout, self.env)
        try:
            for line in fitted(lines, width):
                click.echo(self.redact(line), color=self.color)
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise UnavailableError(
                f"the answer could not be written: {exc.strerror}",
                hint="what the command did is done; only the telling of it failed",
            ) from exc

    def done(self, kind: str, body: Mapping[str, object], lines: Sequence[str]) -> None:
        """Print what was done; ``-q`` leaves it out."""
        if self.json or not self.quiet:
            self.answer(kind, body, lines)
        else:
            self.log("info", "answer", lines[-1] if lines else kind, kind=kind)

    def note(self, message: str) -> None:
        """Tell something once, on stderr, that is no part of the answer."""
        if message in self.notes:
            return
        self.notes.append(message)
        self.log("warning", "note", message)
        if not self.json and not self.quiet:
            self._folded.tell(message)

    def _write_note(self, message: str) -> None:
        text = "note: " + "\n".join(plain(line) for line in message.split("\n"))
        for line in wrapped(self.redact(text), width_of(sys.stderr, self.env)):
            click.echo(line, err=True)

    def hear(self, event: "Event") -> None:
        """Take what is told outside any report too, from any thread: a storage that is waited for.

        Goes where the reporter writes, while one does.
        """
        reporter = self._reporter
        if reporter is not None:
            reporter(event)
        elif message := getattr(event, "message", None):
            self.note(message)

    @property
    def elapsed(self) -> float:
        """Seconds since the command line began its work."""
        return time.monotonic() - self._began

    @property
    def color(self) -> bool | None:
        """False where NO_COLOR asks for it; None lets the terminal decide."""
        return False if self.env.get("NO_COLOR") else None


def path_override(path: Path | None) -> str | None:
    """Return the text of a path option for the configuration."""
    return None if path is None else str(path)

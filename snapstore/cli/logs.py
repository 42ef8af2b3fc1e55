"""Send the library's log lines to the terminal and to a file, and what each run did to the file."""

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from snapstore.config.schema import LoggingConfig
from snapstore.errors import ConfigError
from snapstore.model.home import expanded

_RUN = "snapstore.run"
"""What a run did: for the file alone, since the terminal has the answer itself."""


class _Lines(logging.Formatter):
    """A line for each record, without the secrets, the traceback included."""

    def __init__(self, pattern: str, redact: Callable[[str], str]) -> None:
        super().__init__(pattern)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


class _JsonLines(logging.Formatter):
    """An object for each record: time, level, logger, pid, event, message, and the event's own."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        document = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "event": getattr(record, "event", "log"),
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return self._redact(json.dumps(document, default=str))


def configure(
    config: LoggingConfig, *, verbose: int, quiet: bool, redact: Callable[[str], str]
) -> None:
    """Set up the ``snapstore`` logger; drivers' own loggers are left alone.

    Raises ConfigError when the log file cannot be opened.
    """
    logger, run = logging.getLogger("snapstore"), logging.getLogger(_RUN)
    for each in (logger, run):
        for handler in [*each.handlers]:
            each.removeHandler(handler)
            handler.close()
        each.propagate = False
    run.addHandler(logging.NullHandler())
    terminal = logging.StreamHandler(sys.stderr)
    level = logging.ERROR if quiet else logging.WARNING
    terminal.setLevel({0: level, 1: logging.INFO}.get(verbose, logging.DEBUG))
    terminal.setFormatter(_Lines("%(levelname)s %(message)s", redact))
    logger.addHandler(terminal)
    lowest = terminal.level
    if config.file is not None:
        file = _file(config.file)
        file.setLevel(config.level.upper())
        text = "%(asctime)s %(levelname)s [%(process)d] %(message)s"
        file.setFormatter(_JsonLines(redact) if config.format == "json" else _Lines(text, redact))
        logger.addHandler(file)
        run.addHandler(file)
        run.setLevel(file.level)
        lowest = min(lowest, file.level)
    logger.setLevel(lowest)


def tell(level: str, event: str, message: str, **facts: object) -> None:
    """Write to the log file, if there is one, what a run did: one line."""
    line = " ".join(message.split("\n"))
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger(_RUN).log(number, "%s", line, extra={"event": event, "facts": facts})


def _file(name: str) -> logging.FileHandler:
    path = expanded(name)
    try:
        # Made before the handler opens it: it names hosts, topics and stores.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        return logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as exc:
        raise ConfigError(
            f"cannot write the log file {path}: {exc.strerror}", key="logging.file"
        ) from exc

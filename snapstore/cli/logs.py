"""Send the library's log lines to the terminal and to a file."""

import logging
import os
import sys
from collections.abc import Callable

from snapstore.config.schema import LoggingConfig
from snapstore.errors import ConfigError
from snapstore.model.home import expanded


class _Redacting(logging.Formatter):
    """Formats a line and takes the secrets out of it, the traceback included."""

    def __init__(self, pattern: str, redact: Callable[[str], str]) -> None:
        super().__init__(pattern)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


def configure(
    config: LoggingConfig, *, verbose: int, quiet: bool, redact: Callable[[str], str]
) -> None:
    """Set up the ``snapstore`` logger; drivers' own loggers are left alone.

    Raises ConfigError when the log file cannot be opened.
    """
    logger = logging.getLogger("snapstore")
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = False
    terminal = logging.StreamHandler(sys.stderr)
    level = logging.ERROR if quiet else logging.WARNING
    terminal.setLevel({0: level, 1: logging.INFO}.get(verbose, logging.DEBUG))
    terminal.setFormatter(_Redacting("%(levelname)s %(message)s", redact))
    logger.addHandler(terminal)
    lowest = terminal.level
    if config.file is not None:
        path = expanded(config.file)
        try:
            # Made before the handler opens it: it names hosts, topics and stores.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
            file = logging.FileHandler(path, encoding="utf-8")
        except OSError as exc:
            raise ConfigError(
                f"cannot write the log file {path}: {exc.strerror}", key="logging.file"
            ) from exc
        file.setLevel(config.level.upper())
        file.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s %(message)s", redact))
        logger.addHandler(file)
        lowest = min(lowest, file.level)
    logger.setLevel(lowest)

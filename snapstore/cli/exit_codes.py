"""The exit code of every error: the one table."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from snapstore import errors

DONE: Final = 0
BUG: Final = 1
USAGE: Final = 2
PARTIAL: Final = 3
DAMAGE: Final = 4
REFUSED: Final = 5
LOSSY_START: Final = 6
NOT_FOUND: Final = 10
CONFLICT: Final = 11
UNAVAILABLE: Final = 12
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


class ExitCode(NamedTuple):
    """A code and what it tells."""

    code: int
    meaning: str


EXIT_CODES: Final = (
    ExitCode(DONE, "done"),
    ExitCode(BUG, "a bug; -v shows the traceback"),
    ExitCode(USAGE, "wrong usage or configuration, credentials or rights"),
    ExitCode(PARTIAL, "some items failed, the others are done; a status is over its threshold"),
    ExitCode(DAMAGE, "damage found"),
    ExitCode(REFUSED, "refused for safety"),
    ExitCode(LOSSY_START, "the application would lose rows at its next start"),
    ExitCode(NOT_FOUND, "repository, snapshot or store not found"),
    ExitCode(CONFLICT, "conflict: exists, not empty, lost a race"),
    ExitCode(UNAVAILABLE, "storage or Kafka not reachable, or the store kept changing: try again"),
    ExitCode(INTERRUPTED, "interrupted"),
    ExitCode(PIPE_CLOSED, "the reader of the output went away"),
)

_BY_ERROR: Final[dict[type[errors.SnapstoreError], int]] = {
    errors.ConfigError: USAGE,
    errors.NotFoundError: NOT_FOUND,
    errors.ConflictError: CONFLICT,
    errors.RefusedError: REFUSED,
    errors.CaptureError: UNAVAILABLE,
    errors.AccessDeniedError: USAGE,
    errors.StoreUnsupportedError: REFUSED,
    errors.SourceDamagedError: DAMAGE,
    errors.IntegrityError: DAMAGE,
    errors.UnavailableError: UNAVAILABLE,
    errors.CredentialsError: USAGE,
    errors.PartialFailureError: PARTIAL,
    errors.SnapstoreError: BUG,
}


_FINAL: Final = frozenset(kind.code for kind in (errors.CredentialsError, errors.AccessDeniedError))


def exit_code_of_unknown(codes: Iterable[str | None]) -> int:
    """Return the code where something could not be found out: final if all the reasons are.

    ``codes`` are those of the errors.
    """
    return USAGE if {*codes} <= _FINAL else UNAVAILABLE


def exit_code(kind: type[errors.SnapstoreError]) -> int:
    """Return the code of an error's class: that of its nearest ancestor in the table."""
    return next(_BY_ERROR[cls] for cls in kind.__mro__ if cls in _BY_ERROR)

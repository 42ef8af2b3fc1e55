"""What a command line leaves."""

from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True)
class Answer:
    """What one call left: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return msgspec.json.decode(self.out)

    @property
    def error(self) -> Any:
        """The one JSON document on stderr."""
        return msgspec.json.decode(self.err)

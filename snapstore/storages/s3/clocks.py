"""How far the clock of this machine is from the storage's, by the Date of its answers."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from snapstore.model.units import format_duration

REFUSED_BEYOND: Final = timedelta(minutes=15)
"""Signatures that are older or younger are refused (S3: RequestTimeTooSkewed)."""

_TOLD_BEYOND: Final = timedelta(minutes=1)


def clock_difference(headers: Mapping[str, str]) -> timedelta | None:
    """Return how far this machine's clock is ahead of the storage's; None where none is told."""
    try:
        sent_at = parsedate_to_datetime(headers["date"])
        return datetime.now(UTC) - sent_at
    except (KeyError, TypeError, ValueError):
        return None


def spell_difference(ahead: timedelta) -> str:
    where = "ahead of" if ahead > timedelta(0) else "behind"
    lasting = format_duration(abs(ahead).total_seconds())
    return f"the clock of this machine is {lasting} {where} the storage's"


class ClockNote:
    """Notes, once, that the clocks differ. For botocore's event ``needs-retry``.

    ``ahead`` is how far this machine's clock was ahead at the last answer; None before.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._looked = False
        self.ahead: timedelta | None = None

    def after_attempt(self, response: tuple[Any, Mapping[str, Any]] | None, **_: object) -> None:
        if response is None:
            return
        ahead = clock_difference(response[1].get("ResponseMetadata", {}).get("HTTPHeaders", {}))
        if ahead is None:
            return
        self.ahead = ahead
        if self._looked:
            return
        self._looked = True
        if abs(ahead) > _TOLD_BEYOND:
            self._note(f"{spell_difference(ahead)}: the ages of snapshots are off by as much")

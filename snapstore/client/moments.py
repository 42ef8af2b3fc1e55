"""The clock that is used where none is given, and names made from it."""

import os
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def run_id(now: datetime) -> str:
    """Return a new name for one run: its beginning and chance."""
    return f"{now:%Y%m%dt%H%M%S}{os.urandom(4).hex()}"

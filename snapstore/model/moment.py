"""A point in time that is known to be one: with its zone."""

from datetime import datetime
from typing import Annotated

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A datetime field that a decoder accepts only with a zone: without one it cannot be compared."""

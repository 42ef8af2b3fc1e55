"""How long a run may take before what it saw at its beginning need not be true any more."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from snapstore.ports import Clock

Monotonic = Callable[[], float]


class Deadline:
    """Begins when it is made. Two clocks count: one can be set back, the other may sleep."""

    def __init__(
        self, clock: Clock, longest: timedelta, *, monotonic: Monotonic = time.monotonic
    ) -> None:
        self._clock = clock
        self._longest = longest
        self._monotonic = monotonic
        self._began_at: datetime = clock()
        self._began = monotonic()

    def passed(self) -> bool:
        """Whether the run has taken too long by either clock."""
        elapsed = timedelta(seconds=self._monotonic() - self._began)
        return max(self._clock() - self._began_at, elapsed) > self._longest

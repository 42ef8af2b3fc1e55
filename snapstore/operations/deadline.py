"""How long a run may take before what it saw at its beginning need not be true any more."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from snapstore.ports import Clock

Monotonic = Callable[[], float]

LONGEST_MARGIN = timedelta(hours=1)


def margin(longest_run: timedelta) -> timedelta:
    """Return how long a sweep waits beyond the longest run: a quarter of it, an hour at most.

    An entry may still be on its way when its run has looked at the clock, and a listing may lag
    behind by less than half of this.
    """
    return min(longest_run / 4, LONGEST_MARGIN)


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
        return self._elapsed() > self._longest

    def passed_by_far(self) -> bool:
        """Whether sweeps may have given the run up: it has taken up half of their margin too."""
        return self._elapsed() > self._longest + margin(self._longest) / 2

    def _elapsed(self) -> timedelta:
        elapsed = timedelta(seconds=self._monotonic() - self._began)
        return max(self._clock() - self._began_at, elapsed)

"""A limit on bytes per second."""

import threading
import time
from collections.abc import Callable

_FIRST_BYTES = 1 << 20
"""About what a storage gives at once."""

Sleep = Callable[[float], object]


class RateLimit:
    """Lets no more than so many bytes a second pass, over all threads that share it.

    Time in which nothing passed earns no credit. ``sleep`` may return early, or raise: whoever is
    being stopped waits no longer.
    """

    def __init__(
        self,
        bytes_per_second: int,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Sleep = time.sleep,
    ) -> None:
        self.bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = monotonic()

    def passed(self, count: int, *, sleep: Sleep | None = None) -> None:
        """Wait until that many more bytes may have passed."""
        with self._lock:
            now = self._monotonic()
            self._free_at = max(self._free_at, now) + count / self.bytes_per_second
            pause = self._free_at - now
        if pause > 0:
            (sleep or self._sleep)(pause)


class Pace:
    """One transfer under a limit, or under none.

    What it begins with, up to a second's worth, is waited for before anything is asked for: else
    transfers that begin together would all get their first piece at once.
    """

    def __init__(self, limit: RateLimit | None, size: int, sleep: Sleep) -> None:
        self._limit = limit
        self._sleep = sleep
        self._paid = 0
        if limit is not None:
            self._paid = min(size, _FIRST_BYTES, limit.bytes_per_second)
            limit.passed(self._paid, sleep=sleep)

    def passed(self, count: int) -> None:
        """Wait until that many more bytes may have passed."""
        if self._limit is None:
            return
        paid = min(count, self._paid)
        self._paid -= paid
        if count > paid:
            self._limit.passed(count - paid, sleep=self._sleep)

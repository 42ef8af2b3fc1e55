"""A limit on bytes per second."""

import threading
import time
from collections.abc import Callable


class RateLimit:
    """Lets no more than so many bytes a second pass, over all threads that share it.

    ``sleep`` may return early: whoever is being stopped waits no longer.
    """

    def __init__(
        self,
        bytes_per_second: int,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._bytes_per_second = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = monotonic()

    def passed(self, count: int) -> None:
        """Wait until that many more bytes may have passed."""
        with self._lock:
            now = self._monotonic()
            self._free_at = max(self._free_at, now) + count / self._bytes_per_second
            pause = self._free_at - now
        if pause > 0:
            self._sleep(pause)

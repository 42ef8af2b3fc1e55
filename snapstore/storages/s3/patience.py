"""How long a storage that does not answer is waited for, and what is told meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from snapstore.errors import StorageError
from snapstore.model.units import format_duration
from snapstore.storages.s3.answers import endpoint_of

TELL_AFTER_S: Final = 10.0
_KEY: Final = "repository.options.give_up_after"
_FAILED: Final = 500


class _Request:
    """One under way: since when nothing moved, and what its last attempt ended with."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.problem = ""


class Patience:
    """Ends what has been in vain for ``limit``, whichever of many requests it was.

    botocore counts attempts, each of which may take its whole time-out: eight times a minute for
    each file of each store. After the limit every request fails at once for as long again.
    """

    def __init__(
        self,
        limit: timedelta,
        note: Callable[[str], None],
        *,
        tell_after_s: float = TELL_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit.total_seconds()
        self._note = note
        self._tell_after_s = tell_after_s
        self._clock = clock
        self._lock = threading.Lock()
        self._requests: set[_Request] = set()
        self._mine = threading.local()
        self._silent_since: float | None = None
        self._last_end = clock()
        self._given_up: tuple[float, StorageError] | None = None
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Watch over what this thread asks for until it is left.

        Raises StorageError at once where another request was given up a moment ago.
        """
        request = _Request(self._clock())
        with self._lock:
            if request.since - self._last_end > self._limit_s:
                self._silent_since = None
            self._require_hope(request.since)
            if self._silent_since is None:
                self._silent_since = request.since
            self._requests.add(request)
            if self._watch is None:
                self._watch = threading.Thread(
                    target=self._tell, name="snapstore-patience", daemon=True
                )
                self._watch.start()
        outer = getattr(self._mine, "request", None)
        self._mine.request = request
        try:
            yield
        finally:
            self._mine.request = outer
            with self._lock:
                self._requests.discard(request)
                self._last_end = self._clock()

    def moved(self) -> None:
        """Some bytes of what this thread waits for have come or gone."""
        request = getattr(self._mine, "request", None)
        if request is not None:
            request.since = self._clock()
        self._silent_since = None

    def after_attempt(
        self,
        response: tuple[Any, Mapping[str, Any]] | None,
        request_dict: Mapping[str, Any],
        caught_exception: Exception | None = None,
        **_: object,
    ) -> None:
        """Stop trying when it has lasted too long. For botocore's event ``needs-retry``."""
        now = self._clock()
        if response is not None:
            self._silent_since = None
            if response[0].status_code < _FAILED:
                return
        endpoint = endpoint_of(request_dict["url"])
        problem = _problem(endpoint, response, caught_exception)
        request: _Request | None = getattr(self._mine, "request", None)
        since = now
        if request is not None:
            request.problem = problem
            since = request.since
        if response is None and self._silent_since is not None:
            since = min(since, self._silent_since)
        if now - since > self._limit_s:
            raise self._given_up_on(problem, now - since)

    def require(self, since: float, problem: str) -> None:
        """Raise StorageError where a problem has lasted too long; ``since`` is from ``now``."""
        if self.now() - since > self._limit_s:
            raise self._given_up_on(problem, self.now() - since)

    def now(self) -> float:
        return self._clock()

    def close(self) -> None:
        self._closed.set()
        if self._watch is not None:
            self._watch.join()

    def _given_up_on(self, problem: str, lasted_s: float) -> StorageError:
        error = StorageError(
            f"{problem}; given up after {format_duration(lasted_s)}",
            hint=f"check the network and repository.options.endpoint_url; {_KEY} says how long "
            "is waited",
        )
        with self._lock:
            self._given_up = (self._clock(), error)
        return error

    def _require_hope(self, now: float) -> None:
        if self._given_up is None:
            return
        when, error = self._given_up
        if now - when < self._limit_s and self._silent_since is not None:
            raise StorageError(f"not tried any more: {error.message}", hint=error.hint)
        self._given_up = self._silent_since = None

    def _tell(self) -> None:
        limit = format_duration(self._limit_s)
        while not self._closed.wait(self._tell_after_s / 4):
            now = self._clock()
            with self._lock:
                late = [each for each in self._requests if now - each.since > self._tell_after_s]
                problem = next((each.problem for each in late if each.problem), "no answer so far")
            if late:
                self._note(
                    f"waiting for the storage: {problem}; it is given up after {limit} ({_KEY})"
                )
                return


def _problem(
    endpoint: str, response: tuple[Any, Mapping[str, Any]] | None, error: Exception | None
) -> str:
    if response is None:
        return f"no answer from {endpoint} ({type(error).__name__})"
    code = response[1].get("Error", {}).get("Code", "")
    return f"{endpoint} answers with {code} (HTTP {response[0].status_code})"

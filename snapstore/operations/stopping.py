"""Stop work that goes on in other threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Self, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class WorkStopped(BaseException):
    """Leave at once; somebody else says why. Not an Exception, so that no driver retries it."""


class Stop:
    """An order to stop that all threads of a piece of work look at.

    A part of the work can be stopped alone: ``part`` makes a Stop that heeds this one too.
    """

    def __init__(self, whole: Self | None = None) -> None:
        self._event = threading.Event()
        self._whole = whole

    def part(self) -> "Stop":
        return Stop(self)

    def order(self) -> None:
        """Tell everybody to stop."""
        self._event.set()

    @property
    def ordered(self) -> bool:
        return self._event.is_set() or (self._whole is not None and self._whole.ordered)

    def check(self) -> None:
        """Raise WorkStopped if the order was given."""
        if self.ordered:
            raise WorkStopped

    def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the order; raises WorkStopped then."""
        (self._whole or self)._event.wait(seconds)
        self.check()


def result_of(future: Future[_Result]) -> _Result:
    """Wait for a result, and heed an interrupt within half a second."""
    until_failed((future,))
    return future.result()


def results_of(futures: Iterable[Future[_Result]]) -> list[_Result]:
    """Return the results of futures that are done; raises the first error that stopped the others.

    Those that were stopped or cancelled for it say nothing.
    """
    known = [future for future in futures if not future.cancelled()]
    errors = [error for error in (each.exception() for each in known) if error is not None]
    for error in errors:
        if not isinstance(error, WorkStopped):
            raise error
    return [future.result() for future in known]


def until_failed(futures: Iterable[Future[_Result]]) -> None:
    """Wait until all are done or one has failed, and heed an interrupt within half a second.

    A signal that is delivered just before the main thread begins to wait, or to another thread,
    does not end a wait without a time limit (Python's lock acquisition).
    """
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_EXCEPTION)
        if any(not each.cancelled() and each.exception() is not None for each in done):
            return


def in_parallel(
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    parallel: int,
    tick: Callable[[], None] = lambda: None,
) -> list[_Result]:
    """Return what ``work`` makes of the items, in their order; ``tick`` is called now and then.

    An interrupt, an error of the work or of ``tick`` gives up all that has not begun. Raises the
    first error.
    """
    with ThreadPoolExecutor(parallel) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_EXCEPTION)
                tick()
                if any(each.exception() is not None for each in done):
                    break
        finally:
            for future in futures:
                future.cancel()
    return results_of(futures)

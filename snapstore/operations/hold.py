"""Hold one store still, in the order that keeps its offset from being newer than its files."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

import msgspec

from snapstore.errors import CaptureError, SnapstoreError, StoreChangedError
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import Capture, Clock, Layout, StoreBackend

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0

T = TypeVar("T")


class HeldStore(msgspec.Struct, frozen=True, kw_only=True):
    """A captured store. ``began_at`` is a time before anything of it was read, to the millisecond.

    ``running`` says whether an application had it open before the capture; one that was not open
    then is not open at the end either.
    """

    capture: Capture
    running: bool
    noted_offsets: bytes | None
    began_at: datetime


class HeldOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of a captured store, and sentences for the operator on what they show."""

    positions: tuple[ChangelogPosition, ...]
    remarks: tuple[str, ...]


@contextmanager
def held_store(
    location: StoreLocation, layout: Layout, backend: StoreBackend, clock: Clock
) -> Iterator[HeldStore]:
    """Ask whether it runs, read the noted offsets, then capture the files; free them at the end.

    Raises StoreChangedError at the end when an application was started meanwhile, and what
    ``StoreBackend.capture`` raises; CaptureError for what the operating system refuses.
    """
    began_at = clock()
    try:
        running = layout.in_use(location)
        noted_offsets = layout.noted_offsets(location)
        with backend.capture(location) as capture:
            yield HeldStore(
                capture=capture,
                running=running,
                noted_offsets=noted_offsets,
                began_at=began_at.replace(microsecond=began_at.microsecond // 1000 * 1000),
            )
            if not running and layout.in_use(location):
                raise StoreChangedError(
                    f"the application of {location.store} was started while its store was read",
                    hint="try again",
                )
    except OSError as error:
        raise CaptureError(
            f"{location.store} cannot be read: {error.strerror or error}: {error.filename}",
            path=str(error.filename),
        ) from error


def held_offsets(location: StoreLocation, layout: Layout, held: HeldStore) -> HeldOffsets:
    """Return which offsets the held files hold; raises what ``Layout.positions`` raises.

    To be asked before any file is released: the view needs them all.
    """
    view = held.capture.view
    positions = layout.positions(location, held.noted_offsets, view, running=held.running)
    return HeldOffsets(
        positions=positions,
        remarks=layout.remarks(location, held.noted_offsets, view, positions),
    )


def retrying(
    attempt: Callable[[int], T],
    *,
    attempts: int,
    again: tuple[type[SnapstoreError], ...],
    sleep: Callable[[float], None],
    draw: Callable[[], float] = random.random,
) -> T:
    """Call ``attempt`` with 1, 2, ... until it raises none of ``again``, at most so often.

    Between two calls it waits, each time about twice as long, with jitter so that several hosts do
    not keep in step.
    """
    number = 1
    while True:
        try:
            return attempt(number)
        except again:
            if number >= attempts:
                raise
        sleep(min(_FIRST_PAUSE_S * 2 ** (number - 1), _LONGEST_PAUSE_S) * (0.5 + draw()))
        number += 1

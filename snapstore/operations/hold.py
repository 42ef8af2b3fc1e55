"""Hold one store still, in the order that keeps its offset from being newer than its files."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from snapstore.errors import CaptureError, SnapstoreError, StoreChangedError
from snapstore.model.pinned import leads_to
from snapstore.model.regular_file import may_not_be_read
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import Capture, Clock, Layout, StoreBackend

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0

_COUNTED = "rocksdb"
"""Of one RocksDB the MANIFEST tells whether anything of it is missing."""

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


class _Folders:
    """The folders of a store and of its task, as they are now; ``stack`` lets go of them.

    Held open, so that no other gets the inode of one that is removed.
    """

    def __init__(self, location: StoreLocation, stack: ExitStack) -> None:
        self._location = location
        self._files: list[tuple[Path, os.stat_result]] = []
        for path in {location.task_dir, location.path}:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                # What is not there, the backend will say.
                continue
            stack.callback(os.close, fd)
            self._files.append((path, os.fstat(fd)))

    def require_same(self) -> None:
        """Raise StoreChangedError where another one, or none, has the name of one of them."""
        if not all(leads_to(path, was) for path, was in self._files):
            raise _went_away(self._location)


def _went_away(location: StoreLocation) -> StoreChangedError:
    return StoreChangedError(
        f"{location.store} went away or was replaced while it was read",
        hint="try again",
        store=str(location.store),
        path=str(location.path),
    )


@contextmanager
def held_store(
    location: StoreLocation, layout: Layout, backend: StoreBackend, clock: Clock
) -> Iterator[HeldStore]:
    """Ask whether it runs, read the noted offsets, then capture the files; free them at the end.

    Raises StoreChangedError when its folder, or that of its task, did not stay the same until it
    was captured, and at the end when an application was started meanwhile; what
    ``StoreBackend.capture`` raises; CaptureError for what the operating system refuses.
    """
    began_at = clock()
    try:
        with ExitStack() as stack:
            # An offset is that of the files beside it, and of no folder that took their place.
            folders = _Folders(location, stack)
            running = layout.in_use(location)
            noted_offsets = layout.noted_offsets(location)
            capture = stack.enter_context(backend.capture(location))
            folders.require_same()
            yield HeldStore(
                capture=capture,
                running=running,
                noted_offsets=noted_offsets,
                began_at=began_at.replace(microsecond=began_at.microsecond // 1000 * 1000),
            )
            if location.backend != _COUNTED or capture.view.databases != (location.root,):
                # What was removed of it before the rest might not have been missed.
                folders.require_same()
            if not running and layout.in_use(location):
                raise StoreChangedError(
                    f"the application of {location.store} was started while its store was read",
                    hint="try again",
                )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _went_away(location) from error
    except PermissionError as error:
        raise may_not_be_read(Path(error.filename or location.path)) from error
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

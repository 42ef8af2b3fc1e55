"""Compare the clock of this host with the one that dates what lies in a repository.

What all hosts of a repository have in common is its storage. A snapshot that is dated ahead of it
is passed over by a restore until that time has come (``model.plausible``), and a clock that is
behind takes deletions for younger than they are (``model.horizon``).
"""

from datetime import timedelta

from snapstore.errors import ClockDiffersError
from snapstore.model.plausible import CLOCKS_ARE_FAR_APART
from snapstore.model.resume import CLOCK_MARGIN
from snapstore.model.units import format_duration
from snapstore.ports import Clock, ClockedStorage, ObjectStorage


def require_same_time(storage: ObjectStorage, clock: Clock, *, fenced: bool) -> None:
    """Raise ClockDiffersError where what is captured now would be dated wrong.

    An hour ahead is too much; with ``fenced`` an hour behind is, too. A storage that does not tell
    the time is believed to have the same.
    """
    ahead = _ahead(storage, clock, writing=True)
    if ahead is None:
        return
    behind = fenced and ahead < timedelta(0)
    if (-ahead if behind else ahead) <= CLOCKS_ARE_FAR_APART:
        return
    where = "behind" if behind else "ahead of"
    told = format_duration(abs(ahead).total_seconds())
    why = (
        "deletions in the changelogs would be taken for younger than they are"
        if behind
        else "a restore would pass over the snapshots as dated in the future"
    )
    raise ClockDiffersError(
        f"the clock of this host is {told} {where} the storage's, and "
        f"{format_duration(CLOCKS_ARE_FAR_APART.total_seconds())} is the limit: {why}",
        hint="set the clock right, of this host or of the storage, and run again; nothing was sent",
        ahead_s=round(ahead.total_seconds()),
    )


def later_clock(storage: ObjectStorage, clock: Clock) -> Clock:
    """Return the clock that tells how long ago something was: the later of the two.

    It gives up what may be gone; what the storage shows without being written to is believed.
    """
    ahead = _ahead(storage, clock, writing=False)
    if ahead is None or -ahead <= CLOCK_MARGIN:
        return clock
    return lambda: clock() - ahead


def _ahead(storage: ObjectStorage, clock: Clock, *, writing: bool) -> timedelta | None:
    """Return how far ``clock`` is ahead of the storage's; None where that is not told."""
    if not isinstance(storage, ClockedStorage):
        return None
    now = storage.now(writing=writing)
    return None if now is None else clock() - now

"""Changes to what is stored: one host at a time, and none whose clock went back."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec

from snapstore.errors import RefusedError, StorageError
from snapstore.model.plausible import CLOCKS_ARE_FAR_APART
from snapstore.operations.deadline import Deadline, Monotonic
from snapstore.ports import Clock, ObjectStorage
from snapstore.repository import Lease, Leases, Repository, keys
from snapstore.repository.leases import storage_clock
from snapstore.repository.marker import keep_copy
from snapstore.repository.repository import freeing

WORK = "upkeep"
CLOCKS_MAY_DIFFER_BY = timedelta(minutes=5)
_BATCH = 1000
_LARGEST_MARK = 16 << 20


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who does it: the id of the run, and a name for others to read, such as a host and a pid."""

    run: str
    holder: str


class Upkeep:
    """The right to remove things from a repository, for as long as it may be used.

    ``storage_now`` is the time by the clock that dates the stored objects, when the work began.
    """

    def __init__(
        self,
        repository: Repository,
        lease: Lease,
        *,
        clock: Clock,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self.storage_now = lease.storage_now
        self._storage = repository.storage
        self._longest = repository.marker.longest_run
        self._lease = lease
        self._deadline = Deadline(clock, self._longest, monotonic=monotonic)

    def keep(self) -> None:
        """To be called often.

        Raises RunInProgressError when another host took over, RefusedError when the work took
        longer than anything may: what it saw at its beginning may not be true any more.
        """
        if self._deadline.passed():
            raise RefusedError(
                "the work took longer than the repository allows, and was stopped",
                hint="run again: what was done is done",
                longest_run_s=self._longest.total_seconds(),
            )
        self._lease.keep()

    def delete(self, keys: Sequence[str]) -> set[str]:
        """Delete objects; returns the keys that would not go. Raises StorageError for all else."""
        failed: set[str] = set()
        for first in range(0, len(keys), _BATCH):
            self.keep()
            try:
                self._storage.delete(keys[first : first + _BATCH])
            except StorageError as error:
                refused = error.facts.get("failed")
                if not isinstance(refused, list):
                    raise
                failed.update(refused)
        return failed


@contextmanager
def upkeep(
    repository: Repository,
    actor: Actor,
    *,
    clock: Clock,
    monotonic: Monotonic = time.monotonic,
    accept_earlier_clock: bool = False,
) -> Iterator[Upkeep]:
    """Keep every other upkeep of the repository away meanwhile.

    Raises RunInProgressError when one is under way, RefusedError when the clocks of this host and
    of the storage are far apart, or one of them shows an earlier time than it did before.
    """
    with freeing(repository.storage):
        _require_agreement(clock(), storage_clock(repository.storage))
        leases = Leases(
            repository.storage,
            WORK,
            holder=actor.holder,
            clock=clock,
            monotonic=monotonic,
            accept_earlier_clock=accept_earlier_clock,
        )
        with leases.held() as lease:
            if accept_earlier_clock:
                _mark_anew(repository.storage, lease)
            else:
                _require_clocks(lease, clock())
            keep_copy(repository.storage, repository.marker)
            yield Upkeep(repository, lease, clock=clock, monotonic=monotonic)


def _require_agreement(now: datetime, storage_now: datetime) -> None:
    """A wrong clock must neither be acted on nor be remembered."""
    apart = abs(now - storage_now)
    if apart > CLOCKS_ARE_FAR_APART:
        raise RefusedError(
            f"the clock of this host shows {_spell(now)} and that of the storage"
            f" {_spell(storage_now)}: nothing can be said of ages",
            hint="set the clock right",
            apart_s=round(apart.total_seconds()),
        )


def _require_clocks(lease: Lease, now: datetime) -> None:
    if lease.former is None:
        return
    for whose, shows, before in (
        ("this host", now, lease.former.taken_at),
        ("the storage", lease.storage_now, lease.former.stored_at),
    ):
        if shows < before - CLOCKS_MAY_DIFFER_BY:
            raise clock_went_back(whose, shows, before)


def _mark_anew(storage: ObjectStorage, lease: Lease) -> None:
    """Store again what was stored in the future, so that its age is counted from now."""
    for prefix in (keys.CONDEMNED, keys.REMOVED, keys.SWEPT):
        for stat in [*storage.list(prefix)]:
            if stat.modified_at <= lease.storage_now + CLOCKS_MAY_DIFFER_BY:
                continue
            lease.keep()
            body = storage.get(stat.key, limit_bytes=_LARGEST_MARK)
            storage.put(stat.key, body)


def clock_went_back(whose: str, shows: datetime, before: datetime) -> RefusedError:
    """Return why nothing is deleted."""
    return RefusedError(
        f"the clock of {whose} went back: it shows {_spell(shows)} and showed {_spell(before)}",
        hint="set it right, or wait until that time; if it was wrong before and is right now:"
        " --accept-earlier-clock",
        shows=_spell(shows),
        before=_spell(before),
    )


def _spell(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")

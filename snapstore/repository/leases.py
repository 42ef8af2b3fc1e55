"""Leases: one at a time for a kind of work, over all hosts, with nothing to clear up by hand.

A lease is an object with the next free number below ``leases/<work>/``, taken by put-if-absent; the
highest number counts. It is free again once ``<number>.free`` lies beside it, or its time is over
by the storage's own clock; one that cannot be read lasts ``TIME_TO_LIVE``. A holder that needs
longer takes the next number; one that was overtaken finds that number taken. Whoever takes a number
removes the lower ones.

No lease is proof against a host that sleeps between looking and acting. What depends on exclusion
for its safety must bear that; leases spare double work and make plans that exclude each other rare.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from snapstore.errors import (
    ManifestInvalidError,
    ObjectExistsError,
    ObjectNotFoundError,
    RunInProgressError,
    UnavailableError,
)
from snapstore.model.moment import Moment
from snapstore.ports import Clock, ObjectStorage
from snapstore.repository import encoding, keys

TIME_TO_LIVE = timedelta(minutes=10)
_LIMIT_BYTES = 64 << 10
_ATTEMPTS = 5
_LONGEST_TTL_S = 7 * 86_400


class LeaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a lease says: who took it, when by the holder's clock, and for how long."""

    format: int
    holder: str
    taken_at: Moment
    ttl_s: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_TTL_S)]


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """The lease before: when it was taken by its holder's clock and by that of the storage."""

    taken_at: datetime
    stored_at: datetime


class Lease:
    """A lease that is held. ``storage_now`` is what the storage's clock said when it was taken."""

    def __init__(
        self,
        leases: "Leases",
        number: int,
        *,
        former: Former | None,
        storage_now: datetime,
        expires: float,
    ) -> None:
        self.former = former
        self.storage_now = storage_now
        self._leases = leases
        self._number = number
        self._expires = expires

    def keep(self) -> None:
        """Make it last, to be called often. Raises RunInProgressError when it was overtaken."""
        left = self._expires - self._leases.monotonic()
        if left < self._leases.ttl.total_seconds() * 2 / 3:
            self._number, self._expires = self._leases.take(self._number + 1)

    def free(self) -> None:
        self._leases.free(self._number)


class Leases:
    """The leases on one kind of work in one repository.

    With ``accept_earlier_clock`` one that was taken in the future counts for nothing.
    """

    def __init__(
        self,
        storage: ObjectStorage,
        work: str,
        *,
        holder: str,
        clock: Clock,
        ttl: timedelta = TIME_TO_LIVE,
        monotonic: Callable[[], float] = time.monotonic,
        accept_earlier_clock: bool = False,
    ) -> None:
        self._accept_earlier_clock = accept_earlier_clock
        self._storage = storage
        self._work = work
        self._holder = holder
        self._clock = clock
        self.ttl = ttl
        self.monotonic = monotonic

    @contextmanager
    def held(self) -> Iterator[Lease]:
        """Hold the lease meanwhile.

        Raises RunInProgressError at once when another holds it. A holder that dies leaves a lease
        that ends by itself.
        """
        lease = self._acquire()
        try:
            yield lease
        finally:
            lease.free()

    def take(self, number: int) -> tuple[int, float]:
        """Take that number; returns it and when it ends, on the monotonic clock.

        Raises RunInProgressError when it, or a higher one, was taken by somebody else.
        """
        expires = self.monotonic() + self.ttl.total_seconds()
        facts = LeaseFacts(
            format=encoding.FORMAT,
            holder=self._holder,
            taken_at=self._clock(),
            ttl_s=self.ttl.total_seconds(),
        )
        try:
            self._storage.put(self._key(number), encoding.encode(facts), if_absent=True)
        except ObjectExistsError as error:
            raise self._taken(number) from error
        numbers, freed = self._seen()
        top = max(numbers, default=number)
        if top > number:
            self._storage.delete([self._key(number)])
            raise self._taken(top)
        # One that was overtaken may let go of its number long after the number is gone.
        lower = [self._key(each) for each in {*numbers, *freed} if each < number]
        self._storage.delete([key for each in lower for key in (each, _freed(each))])
        return number, expires

    def free(self, number: int) -> None:
        """Let go of that number; where the storage cannot be told, it ends by itself."""
        with suppress(ObjectExistsError, UnavailableError):
            self._storage.put(_freed(self._key(number)), b"{}", if_absent=True)

    def _acquire(self) -> Lease:
        for _ in range(_ATTEMPTS):
            storage_now = storage_clock(self._storage)
            numbers, freed = self._seen()
            top = max(numbers, default=0)
            former = None
            if top:
                try:
                    facts = self._facts(top)
                except ObjectNotFoundError:
                    continue
                except ManifestInvalidError as error:
                    # Nobody can say who holds it: it ends like one of ours that was cut.
                    if top not in freed and storage_now < numbers[top] + self.ttl:
                        raise self._unreadable(top, error) from error
                    number, expires = self.take(top + 1)
                    return Lease(
                        self, number, former=None, storage_now=storage_now, expires=expires
                    )
                stored_at = numbers[top]
                former = Former(taken_at=facts.taken_at, stored_at=stored_at)
                from_the_future = stored_at > storage_now + self.ttl
                if from_the_future and self._accept_earlier_clock:
                    former = None
                elif top not in freed and storage_now < stored_at + timedelta(seconds=facts.ttl_s):
                    raise self._taken(top, facts)
            number, expires = self.take(top + 1)
            return Lease(self, number, former=former, storage_now=storage_now, expires=expires)
        raise RunInProgressError(f"others take the lease on {self._work} all the time")

    def _seen(self) -> tuple[dict[int, datetime], set[int]]:
        """Return the numbers that are taken, each with its storage time, and those let go of."""
        numbers: dict[int, datetime] = {}
        freed: set[int] = set()
        prefix = f"{keys.LEASES}{self._work}/"
        for stat in self._storage.list(prefix):
            name = stat.key.removeprefix(prefix)
            text = name.removesuffix(_FREE)
            if not _NUMBER.fullmatch(text):
                continue
            if name == text:
                numbers[int(text)] = stat.modified_at
            else:
                freed.add(int(text))
        return numbers, freed

    def _facts(self, number: int) -> LeaseFacts:
        key = self._key(number)
        body = self._storage.get(key, limit_bytes=_LIMIT_BYTES)
        return encoding.decode(body, LeaseFacts, what=f"the lease {key}")

    def _taken(self, number: int, facts: LeaseFacts | None = None) -> RunInProgressError:
        if facts is None:
            try:
                facts = self._facts(number)
            except ObjectNotFoundError:
                return RunInProgressError(f"another host has just begun {self._work}")
            except ManifestInvalidError as error:
                return self._unreadable(number, error)
        since = facts.taken_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return RunInProgressError(
            f"{facts.holder} has been at {self._work} since {since}",
            hint=f"wait until it ends; if it has crashed, {facts.ttl_s:.0f} s at most",
            holder=facts.holder,
            since=since,
        )

    def _unreadable(self, number: int, error: ManifestInvalidError) -> RunInProgressError:
        minutes = self.ttl.total_seconds() / 60
        return RunInProgressError(
            f"somebody may be at {self._work}: {error.message}",
            hint=f"wait: {minutes:.0f} minutes after it was stored it counts for nothing",
            key=self._key(number),
        )

    def _key(self, number: int) -> str:
        return f"{keys.LEASES}{self._work}/{number:020}"


_FREE = ".free"
_NUMBER = re.compile(r"[0-9]{20}")


def _freed(key: str) -> str:
    return key + _FREE


def storage_clock(storage: ObjectStorage) -> datetime:
    """Return the time by the clock that dates the objects of a storage."""
    key = f"{keys.CLOCKS}{uuid.uuid4().hex}"
    storage.put(key, b"{}", if_absent=True)
    try:
        stat = storage.stat(key)
    finally:
        storage.delete([key])
    if stat is None:
        raise ObjectNotFoundError(f"{key} was stored and is not there", key=key)
    return stat.modified_at

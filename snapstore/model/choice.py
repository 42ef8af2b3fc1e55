"""Choose the newest snapshot that can be used, and say why each newer one was skipped."""

from collections.abc import Callable, Iterable

import msgspec

from snapstore.errors import RefusedError
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import Snapshot


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot that was not used; ``code`` is that of the refusal, ``reason`` its sentence."""

    snapshot: Snapshot
    code: str
    reason: str


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot to use with its plans, one a position; None where every one was refused."""

    snapshot: Snapshot | None
    plans: tuple[ResumePlan, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def choose(
    snapshots: Iterable[Snapshot], check: Callable[[Snapshot], tuple[ResumePlan, ...]]
) -> Choice:
    """Take the snapshots of one store from the newest on, and return the first that ``check`` lets.

    ``check`` raises RefusedError. Any other error is let through: that the log could not be read
    says nothing about a snapshot, and must not lead to an older one.
    """
    skipped: list[Skipped] = []
    for snapshot in sorted(snapshots, key=newness, reverse=True):
        try:
            plans = check(snapshot)
        except RefusedError as error:
            skipped.append(Skipped(snapshot=snapshot, code=error.code, reason=error.message))
        else:
            return Choice(snapshot=snapshot, plans=plans, skipped=tuple(skipped))
    return Choice(snapshot=None, skipped=tuple(skipped))


def newness(snapshot: Snapshot) -> tuple[int, object, str]:
    """Sort key by applied offset, then time: clocks of two hosts may disagree, offsets do not."""
    description = snapshot.description
    applied = sum(position.position.applied_offset for position in description.positions)
    return (applied, description.captured_at, snapshot.id)

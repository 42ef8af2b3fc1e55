"""What a sweep deletes, and what it marks for a later one: decided from a survey alone."""

from collections.abc import Collection
from datetime import datetime, timedelta

import msgspec

from snapstore.operations.deadline import margin
from snapstore.operations.survey import Orphan, Survey


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """How long the sweep leaves things alone: what a run may still need, and what it has marked."""

    unfinished: timedelta
    condemned: timedelta

    @classmethod
    def of(cls, longest_run: timedelta, grace: timedelta) -> "Waits":
        """Return the shortest waits that are safe, or longer where ``grace`` asks for it."""
        safe = longest_run + margin(longest_run)
        return cls(unfinished=safe, condemned=max(safe, grace))


class SweepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one sweep does. Names are those of blobs, ids those of snapshots.

    ``delete`` were condemned long enough ago and nothing names them; ``condemn`` nothing names any
    more; ``waiting`` are condemned and not yet due; ``young`` nothing names either, and a run may
    still be about to. ``gone`` are condemned and not there any more:
    that is noted, and ``revive`` are names of such notes that are old enough. ``broken`` are named
    by snapshots and are not there, or of another size: they are condemned too, so that the next
    snapshot which needs their bytes sends them anew under another name. ``lost`` are the snapshots
    whose entries seem to be lost, not removed. ``unjudged`` tells why no blob could be judged: then
    none is condemned for not being named, and none deleted.
    """

    delete: tuple[str, ...] = ()
    condemn: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    young: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    revive: tuple[str, ...] = ()
    old_records: tuple[str, ...] = ()
    delete_manifests: tuple[str, ...] = ()
    remove_manifests: tuple[str, ...] = ()
    forget_removed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


def plan_sweep(
    found: Survey, *, removed: Collection[str], storage_now: datetime, waits: Waits
) -> SweepPlan:
    """Plan the sweep that follows on the removal of those snapshots.

    ``storage_now`` is by the clock that dates the survey's objects, before it was made.
    """
    listed = {each.listed.id for each in found.snapshots}
    remaining = [each for each in found.snapshots if each.listed.id not in removed]
    stores = {each.listed.store for each in remaining}
    delete_manifests, remove_manifests, lost = [], [], []
    protecting: list[Orphan] = []
    for orphan in found.orphans:
        mark = found.removed.get(orphan.id)
        if mark is not None:
            if storage_now - mark.modified_at > waits.condemned:
                delete_manifests.append(orphan.id)
            continue
        protecting.append(orphan)
        if orphan.newer or not _is_old(storage_now - orphan.stat.modified_at, waits):
            continue
        if orphan.listed is None or orphan.listed.store in stores:
            remove_manifests.append(orphan.id)
        else:
            lost.append(orphan.id)
    plan = SweepPlan(
        delete_manifests=tuple(delete_manifests),
        remove_manifests=tuple(remove_manifests),
        forget_removed=tuple(
            snapshot_id
            for snapshot_id, mark in found.removed.items()
            if snapshot_id not in found.manifests
            and snapshot_id not in listed
            and storage_now - mark.modified_at > waits.unfinished
        ),
        lost=tuple(lost),
        broken=tuple(
            sorted({name for each in remaining for name in each.broken} - found.condemned.keys())
        ),
        unjudged=_unjudged(found, protecting),
    )
    if plan.unjudged:
        return plan
    named = {name for each in found.snapshots for name in each.blobs or ()}
    named |= {name for orphan in protecting for name in orphan.blobs}
    needed = {name for each in remaining for name in each.blobs or ()}
    needed |= {name for orphan in protecting for name in orphan.blobs}
    return _with_blobs(plan, found, named, needed, storage_now, waits)


def _is_old(age: timedelta, waits: Waits) -> bool:
    """Whether no run can still be at work on it. What is of the future was made by a wrong clock:
    it may be marked, and then waits like everything else.
    """
    return age > waits.unfinished or age < -waits.unfinished


def _with_blobs(
    plan: SweepPlan,
    found: Survey,
    named: Collection[str],
    needed: Collection[str],
    storage_now: datetime,
    waits: Waits,
) -> SweepPlan:
    """Add the blobs. ``named`` may not be deleted, ``needed`` not even be condemned."""
    delete, waiting = [], []
    condemn: list[str] = []
    young: list[str] = []
    for name, stat in found.blobs.items():
        mark = found.condemned.get(name)
        if mark is None:
            if name not in needed:
                old = _is_old(storage_now - stat.modified_at, waits)
                (condemn if old else young).append(name)
        elif name in named:
            continue
        elif storage_now - mark.modified_at > waits.condemned:
            delete.append(name)
        else:
            waiting.append(name)
    gone = found.condemned.keys() - found.blobs.keys()
    revive = set()
    for record in found.records:
        noted = {
            name
            for name in gone & record.names
            if found.condemned[name].modified_at < record.stored_at
        }
        gone -= noted
        if storage_now - record.stored_at > waits.condemned:
            revive |= noted
    return msgspec.structs.replace(
        plan,
        delete=tuple(delete),
        condemn=tuple(condemn),
        waiting=tuple(waiting),
        young=tuple(young),
        gone=tuple(sorted(gone)),
        revive=tuple(sorted(revive)),
        old_records=tuple(
            record.key
            for record in found.records
            if storage_now - record.stored_at > waits.condemned
        ),
    )


def _unjudged(found: Survey, orphans: Collection[Orphan]) -> tuple[str, ...]:
    reasons = [
        f"snapshot {each.listed.id[:12]} of {each.listed.store} may name any blob: {each.damage}"
        for each in found.snapshots
        if each.blobs is None
    ]
    reasons += [
        f"manifest {orphan.id[:12]} may name any blob: {orphan.damage}"
        for orphan in orphans
        if orphan.newer
    ]
    reasons += [f"{key} is not understood" for key in found.foreign if key.startswith("catalog/")]
    return tuple(reasons)

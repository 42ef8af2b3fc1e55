"""Bring catalog and storage into agreement, losing nothing that is still there."""

import threading
import time

import msgspec

from snapstore.errors import ManifestInvalidError, ObjectNotFoundError
from snapstore.model.report import Event, Noted
from snapstore.model.snapshot import FORMAT, Manifest, Snapshot
from snapstore.model.units import count, few
from snapstore.operations.deadline import Monotonic
from snapstore.operations.repair_plan import (
    PUBLISHING,
    Repaired,
    RepairPlan,
    RepairReport,
    plan_repair,
)
from snapstore.operations.survey import Found, Survey, survey
from snapstore.operations.upkeep import Actor, Upkeep, upkeep
from snapstore.operations.verify import VerifyOptions, verify
from snapstore.ports import Clock, Listener
from snapstore.repository import Repository, keys

_LIMIT_BYTES = 64 << 20


class RepairOptions(msgspec.Struct, frozen=True, kw_only=True):
    """With ``read_data`` every blob is read and hashed, which costs its download.

    ``accept_earlier_clock``: a clock that shows an earlier time than before is the right one.
    """

    read_data: bool = False
    parallel: int = 8
    accept_earlier_clock: bool = False
    limit_bytes_per_second: int | None = None


def propose_repair(
    repository: Repository, options: RepairOptions, *, clock: Clock, listener: Listener
) -> RepairReport:
    """Return what ``repair`` would do; nothing is written."""
    now = clock()
    found = survey(repository, parallel=options.parallel)
    corrupt = _corrupt(repository, found, options, listener)
    plan = plan_repair(found, storage_now=now, corrupt=corrupt)
    return _report(plan, run="", dry_run=True)


def repair(
    repository: Repository,
    options: RepairOptions,
    actor: Actor,
    *,
    clock: Clock,
    listener: Listener,
    monotonic: Monotonic = time.monotonic,
) -> RepairReport:
    """Rebuild entries from manifests, and take out those whose bytes are gone.

    What is taken out of the catalog is first copied to the quarantine. Raises RunInProgressError
    when another host prunes or repairs, RefusedError when a clock went back, UnavailableError when
    the storage cannot be read: what could not be looked at is not taken for lost.
    """
    with upkeep(
        repository,
        actor,
        clock=clock,
        monotonic=monotonic,
        accept_earlier_clock=options.accept_earlier_clock,
    ) as right:
        found = survey(repository, parallel=options.parallel, tick=right.keep)
        corrupt = _corrupt(repository, found, options, _keeping(right, listener))
        plan = plan_repair(found, storage_now=right.storage_now, corrupt=corrupt)
        report = _report(plan, run=actor.run, dry_run=False)
        for note in report.notes:
            listener(Noted(message=note))
        _Repair(repository, actor, right, clock, listener).carry_out(plan)
        return report


class _Repair:
    """Carries a plan out. Each step can be cut short, and is done again by the next repair."""

    def __init__(
        self,
        repository: Repository,
        actor: Actor,
        right: Upkeep,
        clock: Clock,
        listener: Listener,
    ) -> None:
        self._listener = listener
        self._repository = repository
        self._storage = repository.storage
        self._actor = actor
        self._right = right
        self._clock = clock

    def carry_out(self, plan: RepairPlan) -> None:
        for name in plan.broken:
            self._right.keep()
            self._repository.marks.condemn(name, run=self._actor.run, now=self._clock())
        for key in (*plan.strange, *plan.garbage):
            try:
                self._quarantine(key)
            except ManifestInvalidError as error:
                note = f"{key} was left, remove it by hand: {error.message}"
                self._listener(Noted(message=note))
        for each in plan.quarantine:
            self._quarantine(keys.entry(each.listed))
        for each in plan.rewrite:
            self._quarantine(keys.entry(each.listed))
            self._publish(each.listed.id)
        for listed in plan.rebuild:
            self._publish(listed.id)

    def _quarantine(self, key: str) -> None:
        """Copy an object to the quarantine, then delete it."""
        self._right.keep()
        try:
            body = self._storage.get(key, limit_bytes=_LIMIT_BYTES)
        except ObjectNotFoundError:
            return
        self._storage.put(keys.quarantined(self._actor.run, key), body)
        self._storage.delete([key])

    def _publish(self, snapshot_id: str) -> None:
        self._right.keep()
        manifest = self._repository.manifests.load(snapshot_id)
        self._repository.catalog.publish(entry_of(snapshot_id, manifest))


def entry_of(snapshot_id: str, manifest: Manifest) -> Snapshot:
    """Return the catalog entry of a manifest; what was new at the time is not known any more."""
    return Snapshot(
        format=FORMAT,
        id=snapshot_id,
        description=manifest.description,
        files=len(manifest.files),
        size_bytes=sum(file.size for file in manifest.files),
        new_files=0,
        new_bytes=0,
    )


def _keeping(right: Upkeep, listener: Listener) -> Listener:
    """Keep the right as long as there is progress."""
    lock = threading.Lock()

    def tell(event: Event) -> None:
        with lock:
            right.keep()
            listener(event)

    return tell


def _corrupt(
    repository: Repository, found: Survey, options: RepairOptions, listener: Listener
) -> set[str]:
    """Read every blob that a whole snapshot names; returns those with other bytes."""
    if not options.read_data:
        return set()
    report = verify(
        repository,
        [each.listed for each in found.snapshots if each.fault is None],
        backends={},
        listener=listener,
        options=VerifyOptions(
            read_data=True,
            parallel=options.parallel,
            limit_bytes_per_second=options.limit_bytes_per_second,
        ),
    )
    return {each.blob for each in report.damage if each.kind == "corrupt" and each.blob}


def _report(plan: RepairPlan, *, run: str, dry_run: bool) -> RepairReport:
    notes = [f"{each} was written by a newer snapstore, and was left alone" for each in plan.newer]
    if plan.young:
        minutes = PUBLISHING.total_seconds() / 60
        notes.append(
            f"{count(len(plan.young), 'manifest')} without an entry passed over, younger than"
            f" {minutes:.0f} minutes: a run may yet publish them; repair again after that:"
            f" {few([orphan.id[:12] for orphan in plan.young])}"
        )
    if plan.hopeless:
        notes.append(
            f"{count(len(plan.hopeless), 'manifest')} with neither an entry nor all of the bytes:"
            " a prune removes such in time"
        )
    return RepairReport(
        dry_run=dry_run,
        run=run,
        rebuilt=tuple(
            [Repaired(listed=listed, reason="its entry was lost") for listed in plan.rebuild]
            + [_repaired(each, f"its entry was damaged: {each.damage}") for each in plan.rewrite]
        ),
        quarantined=tuple(_repaired(each, each.damage) for each in plan.quarantine),
        left=tuple(_repaired(each, each.damage) for each in plan.archived),
        condemned=plan.broken,
        strange=plan.strange,
        garbage=plan.garbage,
        passed_over=tuple(orphan.id for orphan in plan.young),
        notes=tuple(notes),
    )


def _repaired(found: Found, reason: str | None) -> Repaired:
    return Repaired(listed=found.listed, reason=reason or "")

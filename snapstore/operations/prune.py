"""Prune: retention takes snapshots out of the catalog, the sweep frees bytes nothing names."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypedDict

import msgspec

from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Event, Noted
from snapstore.model.retention import Decision, RetentionPolicy
from snapstore.model.units import count, few, spell_duration
from snapstore.operations.deadline import Monotonic
from snapstore.operations.leftovers import (
    VERSIONS_NOTE,
    abandoned_uploads,
    abort_upload,
    keeps_versions,
)
from snapstore.operations.prune_decisions import Decided, decide, without_entry
from snapstore.operations.prune_report import Amount, PruneReport
from snapstore.operations.survey import Survey, survey
from snapstore.operations.sweep_plan import SweepPlan, Waits, plan_sweep
from snapstore.operations.upkeep import (
    CLOCKS_MAY_DIFFER_BY,
    Actor,
    Upkeep,
    clock_went_back,
    upkeep,
)
from snapstore.ports import Changelog, Clock, Listener, ObjectStat
from snapstore.repository import Repository, keys
from snapstore.repository.leases import storage_clock
from snapstore.repository.repository import AT_ONCE


class PruneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a prune works.

    ``application`` limits the retention to one; the sweep is always over the whole repository.
    ``grace`` lengthens the wait between mark and deletion; it cannot make it shorter than is safe.
    ``accept_earlier_clock``: a clock that shows an earlier time than before is the right one.
    """

    policy: RetentionPolicy
    grace: timedelta = timedelta(0)
    application: str | None = None
    parallel: int = 8
    accept_earlier_clock: bool = False


def plan_prune(
    repository: Repository,
    options: PruneOptions,
    *,
    clock: Clock,
    changelog: Changelog | None = None,
) -> PruneReport:
    """Return what ``prune`` would do; nothing is written. Ages are taken by this host's clock."""
    storage_now = clock()
    found = survey(repository, parallel=options.parallel)
    decided = _decide(found, options, storage_now, changelog, clock)
    waits = Waits.of(repository.marker.longest_run, options.grace)
    removed = without_entry(found, decided.to_remove)
    plan = plan_sweep(found, removed=removed, storage_now=storage_now, waits=waits)
    told: list[Event] = []
    uploads = abandoned_uploads(repository, storage_now - waits.unfinished, told.append)
    versions = keeps_versions(repository.storage)
    blobs = _amount(plan.delete, found.blobs)
    manifests = _amount(plan.delete_manifests, found.manifests)
    return PruneReport(
        dry_run=True,
        decisions=decided.decisions,
        freed=Amount() if versions else _sum(blobs, manifests),
        kept_as_versions=_sum(blobs, manifests) if versions else Amount(),
        deleted_blobs=blobs,
        deleted_manifests=manifests,
        aborted_uploads=len(uploads),
        condemned=_amount(plan.condemn, found.blobs),
        waiting=_amount(plan.waiting, found.blobs),
        wait=waits.condemned,
        **_later(plan, found, waits),
        lost=plan.lost,
        unjudged=plan.unjudged,
        doubtful=decided.doubts,
        notes=(
            *decided.notes,
            *_notes(found, plan, waits),
            *(each.message for each in told if isinstance(each, Noted)),
            *([VERSIONS_NOTE] if versions else ()),
        ),
    )


def prune(
    repository: Repository,
    options: PruneOptions,
    actor: Actor,
    *,
    clock: Clock,
    listener: Listener,
    monotonic: Monotonic = time.monotonic,
    changelog: Changelog | None = None,
) -> PruneReport:
    """Remove what retention does not keep, then sweep. Safe beside snapshots and restores.

    ``changelog`` tells which applied offsets lie beyond the end of their logs. A key that the
    storage would not delete is in the report, and stops nothing else. Raises
    RunInProgressError when another host prunes or repairs, RefusedError when a clock went back,
    UnavailableError when the storage cannot be read.
    """
    with upkeep(
        repository,
        actor,
        clock=clock,
        monotonic=monotonic,
        accept_earlier_clock=options.accept_earlier_clock,
    ) as right:
        return _Prune(repository, options, actor, right, clock, listener, changelog).run()


class _Prune:
    """One run that holds the right to remove."""

    def __init__(
        self,
        repository: Repository,
        options: PruneOptions,
        actor: Actor,
        right: Upkeep,
        clock: Clock,
        listener: Listener,
        changelog: Changelog | None,
    ) -> None:
        self._changelog = changelog
        self._repository = repository
        self._options = options
        self._actor = actor
        self._right = right
        self._clock = clock
        self._listener = listener
        self._waits = Waits.of(repository.marker.longest_run, options.grace)
        self._failed: set[str] = set()

    def run(self) -> PruneReport:
        found = survey(self._repository, parallel=self._options.parallel, tick=self._right.keep)
        if not self._options.accept_earlier_clock:
            _require_no_future(found, storage_clock(self._repository.storage))
        # The earlier of two clocks keeps more.
        now = min(self._clock(), self._right.storage_now)
        decided = _decide(found, self._options, now, self._changelog, self._clock)
        removed = self._remove(found, decided)
        plan = plan_sweep(
            found,
            removed=without_entry(found, removed),
            storage_now=self._right.storage_now,
            waits=self._waits,
        )
        notes = (*decided.notes, *_notes(found, plan, self._waits))
        for note in notes:
            self._listener(Noted(message=note))
        blobs = self._delete(plan.delete, keys.blob, found.blobs)
        manifests = self._delete(plan.delete_manifests, keys.manifest, found.manifests)
        self._condemn(plan)
        self._tidy(plan)
        versions = keeps_versions(self._repository.storage)
        if versions:
            self._listener(Noted(message=VERSIONS_NOTE))
            notes = (*notes, VERSIONS_NOTE)
        return PruneReport(
            dry_run=False,
            decisions=tuple(_carried_out(decided.decisions, removed)),
            freed=Amount() if versions else _sum(blobs, manifests),
            kept_as_versions=_sum(blobs, manifests) if versions else Amount(),
            deleted_blobs=blobs,
            deleted_manifests=manifests,
            aborted_uploads=self._abort_uploads(),
            condemned=_amount(plan.condemn, found.blobs),
            waiting=_amount(plan.waiting, found.blobs),
            wait=self._waits.condemned,
            **_later(plan, found, self._waits),
            lost=plan.lost,
            unjudged=plan.unjudged,
            doubtful=decided.doubts,
            failed=tuple(sorted(self._failed)),
            notes=notes,
        )

    def _remove(self, found: Survey, decided: Decided) -> set[ListedSnapshot]:
        """Take snapshots out of the catalog; returns those that are out."""
        doomed = {keys.entry(listed): listed for listed in decided.to_remove}
        gone = without_entry(found, decided.to_remove)
        entries, failed = [*doomed], set[str]()
        # A few at a time: on a full disk each entry makes room for the next mark.
        for first in range(0, len(entries), AT_ONCE):
            some = entries[first : first + AT_ONCE]
            self._each(gone & {doomed[entry].id for entry in some}, self._say_removed)
            failed |= self._right.delete(some)
        self._failed |= failed
        return {listed for key, listed in doomed.items() if key not in failed}

    def _delete(
        self,
        names: Sequence[str],
        key_of: Callable[[str], str],
        stats: Mapping[str, ObjectStat],
    ) -> Amount:
        failed = self._right.delete([key_of(name) for name in names])
        self._failed |= failed
        return _amount([name for name in names if key_of(name) not in failed], stats)

    def _condemn(self, plan: SweepPlan) -> None:
        marks, run = self._repository.marks, self._actor.run
        names = (*plan.condemn, *plan.broken)
        self._each(names, lambda name: marks.condemn(name, run=run, now=self._clock()))
        self._each(plan.remove_manifests, self._say_removed)

    def _say_removed(self, snapshot_id: str) -> None:
        self._repository.marks.remove(snapshot_id, run=self._actor.run, now=self._clock())

    def _tidy(self, plan: SweepPlan) -> None:
        """Forget marks that have done their service, in an order that a crash may cut short."""
        if plan.gone:
            self._repository.marks.record(plan.gone, run=self._actor.run, now=self._clock())
        undone = self._right.delete([keys.condemned(name) for name in plan.revive])
        if not undone:
            self._failed |= self._right.delete(plan.old_records)
        self._failed |= undone
        self._failed |= self._right.delete([keys.removed(each) for each in plan.forget_removed])
        before = self._right.storage_now - self._waits.unfinished
        stale = [
            stat.key
            for prefix in (keys.CLOCKS, keys.PROBES)
            for stat in self._repository.storage.list(prefix)
            if stat.modified_at < before
        ]
        self._failed |= self._right.delete(stale)

    def _abort_uploads(self) -> int:
        before = self._right.storage_now - self._waits.unfinished
        aborted = 0
        for upload in abandoned_uploads(self._repository, before, self._listener):
            self._right.keep()
            aborted += abort_upload(self._repository, upload, self._listener)
        return aborted

    def _each(self, names: Collection[str], work: Callable[[str], object]) -> None:
        with ThreadPoolExecutor(self._options.parallel, "prune") as pool:
            try:
                for _ in pool.map(work, names):
                    self._right.keep()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _decide(
    found: Survey,
    options: PruneOptions,
    now: datetime,
    changelog: Changelog | None,
    clock: Clock,
) -> Decided:
    return decide(
        found,
        options.policy,
        application=options.application,
        now=now,
        changelog=changelog,
        clock=clock,
    )


def _carried_out(
    decisions: Iterable[Decision], removed: Collection[ListedSnapshot]
) -> Iterable[Decision]:
    for decision in decisions:
        if decision.kept or decision.listed in removed:
            yield decision
        else:
            yield Decision(
                listed=decision.listed,
                kept=True,
                reasons=("the storage would not delete its entry",),
            )


def _require_no_future(found: Survey, storage_now: datetime) -> None:
    """Refuse when an object was made later than now: ages would mean nothing."""
    stats = (*found.condemned.values(), *found.removed.values(), *found.blobs.values())
    latest = max((stat.modified_at for stat in stats), default=storage_now)
    if latest > storage_now + CLOCKS_MAY_DIFFER_BY:
        raise clock_went_back("the storage", storage_now, latest)


def _notes(found: Survey, plan: SweepPlan, waits: Waits) -> tuple[str, ...]:
    notes = [f"no blob was condemned or deleted: {reason}" for reason in plan.unjudged]
    if plan.broken:
        notes.append(
            f"lost: {count(len(plan.broken), 'blob')} that snapshots name, first {plan.broken[0]}:"
            " the next snapshots of those stores send their bytes anew; see snapstore verify"
        )
    if plan.lost:
        notes.append(
            f"{count(len(plan.lost), 'snapshot')} without a catalog entry, which nobody removed:"
            " snapstore repair brings back what is whole"
        )
    if plan.remove_manifests:
        notes.append(
            f"{count(len(plan.remove_manifests), 'manifest')} never published, or without an entry"
            f" by now, to go in {spell_duration(waits.condemned)}: see snapstore repair before"
        )
    histories: dict[StoreId, set[str]] = {}
    for each in found.snapshots:
        histories.setdefault(each.listed.store, set()).add(each.history)
    notes += [
        f"{store} has snapshots of {len(known)} topics of one name, and keeps some of each:"
        " delete by hand those of a topic that is gone"
        for store, known in histories.items()
        if len(known - {""}) > 1
    ]
    foreign = [key for key in found.foreign if not key.startswith(keys.CATALOG)]
    if foreign:
        notes.append(
            f"{few(foreign)} means nothing here, and was left alone; snapstore repair moves such to"
            " the quarantine"
        )
    if found.litter:
        notes.append(
            f"{few(found.litter)} is of a console, a file manager or a file system, and was left"
            " alone"
        )
    return tuple(notes)


class _Later(TypedDict):
    waiting_until: datetime | None
    young: Amount
    young_until: datetime | None


def _later(plan: SweepPlan, found: Survey, waits: Waits) -> _Later:
    """Return how much a later prune can mark or delete, and from when on the first of it."""
    marked = [found.condemned[name].modified_at for name in plan.waiting]
    stored = [found.blobs[name].modified_at for name in plan.young]
    return _Later(
        waiting_until=min(marked) + waits.condemned if marked else None,
        young=_amount(plan.young, found.blobs),
        young_until=min(stored) + waits.unfinished if stored else None,
    )


def _amount(names: Collection[str], stats: Mapping[str, ObjectStat]) -> Amount:
    return Amount(count=len(names), size_bytes=sum(stats[name].size for name in names))


def _sum(*amounts: Amount) -> Amount:
    return Amount(
        count=sum(amount.count for amount in amounts),
        size_bytes=sum(amount.size_bytes for amount in amounts),
    )

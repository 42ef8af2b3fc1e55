"""Before a start: mend what would lose rows, restore what would be rebuilt, leave the rest."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from snapstore.errors import IntegrityError, NotFoundError, RefusedError, StoreNotFoundError
from snapstore.model.identity import StoreId, natural_order
from snapstore.model.units import count
from snapstore.model.verdict import Kind, Verdict, worst_kind
from snapstore.operations.fsck import FsckOptions, FsckPorts, fsck
from snapstore.operations.fsck_report import FsckReport
from snapstore.operations.group_rights import remark_on_group
from snapstore.operations.mend import MendedTask, interrupted, mend
from snapstore.operations.mend_plan import MendPlan, plan_mend
from snapstore.operations.prepare_plan import Decision, Saved, Share, choose_tasks, decide
from snapstore.operations.restore_report import RestoreReport

Restore = Callable[[str, str | None, Mapping[str, str]], RestoreReport]
"""Restores one store of a task, or with None the whole task, over what is there.

The last are reasons by names of stores: what is there of those is set aside, never removed. Nobody
has said that it may go, and it may hold rows that the changelog has no more.
"""

Outcome = Literal["as_it_is", "unseen", "mended", "restored", "rebuilds", "left"]

EmptyStart = Literal["no_snapshot", "none_of_this_instance"]
"""There is no snapshot of the application, or none that was captured at this instance."""

_NOT_USABLE = (RefusedError, NotFoundError, IntegrityError)
"""What says that no snapshot can be used. Any other error says that it could not be found out, and
is never taken for an answer."""


class PrepareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to prepare, and what may be done.

    ``tasks``, ``share`` and ``instance`` (default: ``host``) say which tasks an empty disk gets.
    ``bring`` False: none. ``prefer_snapshots``: restore also where a mend would do.
    """

    fsck: FsckOptions
    tasks: tuple[str, ...] = ()
    share: Share | None = None
    instance: str | None = None
    host: str
    bring: bool = True
    prefer_snapshots: bool = False


class PreparePorts(msgspec.Struct, frozen=True, kw_only=True):
    """What it works with.

    ``saved`` looks up the newest snapshot of each store of the application, ``instances_of``
    at which instances the snapshots of each task were captured. Both are called only where a
    decision needs them; without a repository there is none.
    """

    fsck: FsckPorts
    saved: Saved
    instances_of: Callable[[], Mapping[str, Collection[str]]]
    restore: Restore


class PreparePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done: decisions on what is there, and tasks to bring.

    ``report`` is None for an empty disk, and ``empty_start`` says why it stays so.
    """

    report: FsckReport | None
    decisions: tuple[Decision, ...]
    bring: tuple[str, ...]
    mend: MendPlan
    empty_start: EmptyStart | None = None


class PreparedStore(msgspec.Struct, frozen=True, kw_only=True):
    """What was done about one store, and why."""

    store: StoreId
    outcome: Outcome
    reason: str


class PrepareReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state directory as it is now. ``notes`` are sentences on what was found and tried.

    ``worst`` is of all stores, ``worst_seen`` of those that could be opened and of those that
    should have been: what only its application can open starts as it is, and stops no start.
    ``empty_start``: the disk was empty, and why nothing was restored to it.
    """

    stores: tuple[PreparedStore, ...]
    worst: Kind
    worst_seen: Kind
    mended: tuple[MendedTask, ...] = ()
    restored: tuple[RestoreReport, ...] = ()
    notes: tuple[str, ...] = ()
    empty_start: EmptyStart | None = None


def plan_prepare(state_dir: Path, ports: PreparePorts, options: PrepareOptions) -> PreparePlan:
    """Return what ``prepare`` would do; nothing is written.

    Raises what ``fsck`` and ``choose_tasks`` raise.
    """
    report = _look(state_dir, ports, options)
    plan = MendPlan(tasks=()) if report is None else plan_mend(report)
    decisions: tuple[Decision, ...] = ()
    if report is not None:
        decisions = decide(report, plan, ports.saved, prefer_snapshots=options.prefer_snapshots)
    bring = _to_bring(report, ports, options)
    empty_start: EmptyStart | None = None
    if report is None and not bring and options.bring:
        empty_start = "none_of_this_instance" if ports.saved() else "no_snapshot"
    return PreparePlan(
        report=report, decisions=decisions, bring=bring, mend=plan, empty_start=empty_start
    )


def prepare(state_dir: Path, ports: PreparePorts, options: PrepareOptions) -> PrepareReport:
    """Make a state directory safe to start with, and quick where snapshots allow it.

    An interrupted restore or mend is resolved first. What no snapshot helps is mended; what no mend
    helps is left to the application, which fills it from the changelog. A directory that needs
    nothing is read and not touched. An empty disk of an instance that captured nothing stays empty.
    Raises StoreInUseError when the application runs, RefusedError when nothing was captured at a
    named instance, and UnavailableError when a decision needs a storage or Kafka that cannot be
    reached: that is no answer, and never leads to an empty start.
    """
    notes: list[str] = []
    mended = _finish_interrupted(state_dir, ports, options, notes)
    plan = plan_prepare(state_dir, ports, options)
    if plan.empty_start is not None:
        notes.append(_why_empty(plan.empty_start, options))
    restored: list[RestoreReport] = []
    for task in plan.bring:
        restored += _restore_task(task, ports, options, notes)
    restored += _restore_decided(plan.decisions, ports, notes)
    if plan.mend.tasks:
        mended += mend(state_dir, ports.fsck, _of_disk(state_dir, ports, options)).tasks
    report = _look(state_dir, ports, options) if mended or restored else plan.report
    if report is not None:
        notes += [
            note for task in report.tasks for note in ports.fsck.accepted(task.facts.task_dir)
        ]
    if rights := remark_on_group(state_dir):
        notes.append(rights)
    verdicts = () if report is None else report.verdicts
    seen = [verdict for verdict in verdicts if verdict.cause != "unsupported"]
    if len(seen) < len(verdicts):
        unseen = count(len(verdicts) - len(seen), "store")
        notes.append(f"{unseen} that only the application can open: not looked into, left as is")
    done = {store.store for each in restored for store in each.stores}
    return PrepareReport(
        stores=_outcomes(verdicts, done, mended, plan.decisions),
        worst=worst_kind(verdicts),
        worst_seen=worst_kind(seen),
        mended=tuple(mended),
        restored=tuple(restored),
        notes=tuple(notes),
        empty_start=plan.empty_start,
    )


def _why_empty(reason: EmptyStart, options: PrepareOptions) -> str:
    """Return a sentence on an application that is about to start from nothing."""
    application = options.fsck.application or "the application"
    if reason == "no_snapshot":
        return f"there is no snapshot of {application} to restore: it starts from nothing"
    return (
        f"no snapshot of {application} was captured at {options.host!r}: it starts from nothing; "
        "--task, --share i/n (1/1 for all) or --instance choose what to restore"
    )


def _look(state_dir: Path, ports: PreparePorts, options: PrepareOptions) -> FsckReport | None:
    """Return what is on the disk; None when there is no store and no trace of one."""
    try:
        report = fsck(state_dir, ports.fsck, _of_disk(state_dir, ports, options))
    except StoreNotFoundError:
        return None
    return report if report.verdicts else None


def _of_disk(state_dir: Path, ports: PreparePorts, options: PrepareOptions) -> FsckOptions:
    """Limit the look to the named tasks, as far as they are there."""
    if not options.tasks:
        return options.fsck
    application = options.fsck.application
    there = {each.task for each in ports.fsck.inspector.read_tasks(state_dir, application)}
    named = tuple(task for task in options.tasks if task in there)
    if not named:
        raise StoreNotFoundError("none of the named tasks is there", tasks=list(options.tasks))
    return msgspec.structs.replace(options.fsck, tasks=named)


def _to_bring(
    report: FsckReport | None, ports: PreparePorts, options: PrepareOptions
) -> tuple[str, ...]:
    """Choose the tasks to restore: all of this instance on an empty disk, else named ones only."""
    if not options.bring:
        return ()
    there = set() if report is None else {verdict.store.task for verdict in report.verdicts}
    missing = set(options.tasks) - there
    if report is not None and not missing:
        return ()
    known = {store.task for store in ports.saved()}
    if options.tasks:
        return tuple(sorted(known & missing, key=natural_order))
    return choose_tasks(
        known,
        ports.instances_of,
        instance=options.instance,
        share=options.share,
        host=options.host,
    )


def _finish_interrupted(
    state_dir: Path, ports: PreparePorts, options: PrepareOptions, notes: list[str]
) -> list[MendedTask]:
    try:
        found = interrupted(ports.fsck.inspector, state_dir, options.fsck.application)
    except StoreNotFoundError:
        return []
    if not found:
        return []
    report = mend(state_dir, ports.fsck, options.fsck)
    notes += report.recovered
    return list(report.tasks)


def _restore_task(
    task: str, ports: PreparePorts, options: PrepareOptions, notes: list[str]
) -> list[RestoreReport]:
    """Restore a whole task; if that cannot be, each store of it that can, unless exactly-once."""
    try:
        return [ports.restore(task, None, {})]
    except _NOT_USABLE as error:
        notes.append(f"task {task} was not restored: {error.message}")
    if options.fsck.guarantee.startswith("exactly_once"):
        return []
    stores = sorted(store.store for store in ports.saved() if store.task == task)
    if len(stores) < 2:
        return []
    return [each for store in stores for each in _restore_store(task, store, {}, ports, notes)]


def _restore_decided(
    decisions: Sequence[Decision], ports: PreparePorts, notes: list[str]
) -> list[RestoreReport]:
    reports: list[RestoreReport] = []
    tasks = dict.fromkeys(decision.store.task for decision in decisions)
    for task in tasks:
        chosen = [
            decision
            for decision in decisions
            if decision.store.task == task and decision.choice == "restore"
        ]
        reasons = {decision.store.store: decision.reason for decision in chosen}
        if any(decision.whole_task for decision in chosen):
            try:
                reports.append(ports.restore(task, None, reasons))
            except _NOT_USABLE as error:
                notes.append(f"task {task} was not restored: {error.message}")
            continue
        for decision in chosen:
            reports += _restore_store(task, decision.store.store, reasons, ports, notes)
    return reports


def _restore_store(
    task: str, store: str, reasons: Mapping[str, str], ports: PreparePorts, notes: list[str]
) -> list[RestoreReport]:
    try:
        return [ports.restore(task, store, reasons)]
    except _NOT_USABLE as error:
        notes.append(f"{task}/{store} was not restored: {error.message}")
        return []


def _outcomes(
    verdicts: Sequence[Verdict],
    restored: set[str],
    mended: Sequence[MendedTask],
    decisions: Sequence[Decision],
) -> tuple[PreparedStore, ...]:
    """Return what became of each store. What was set aside is told, with why and where it is."""
    effects: dict[StoreId, str] = {}
    for task in mended:
        kept = "" if task.quarantine is None else f"; kept in {task.quarantine}"
        for each in task.plan.stores:
            told = f"{each.reason}; {each.effect}{kept if each.paths else ''}"
            before = effects.get(each.store)
            effects[each.store] = told if before is None else f"{before}; then {told}"
    why = {each.store: each.reason for each in decisions if each.choice == "restore"}
    stores = [_outcome(verdict, restored, effects, why) for verdict in verdicts]
    seen = {each.store for each in stores}
    stores += [
        PreparedStore(store=store, outcome="mended", reason=effect)
        for store, effect in effects.items()
        if store not in seen
    ]
    return tuple(sorted(stores, key=lambda each: each.store.order))


def _outcome(
    verdict: Verdict,
    restored: set[str],
    effects: Mapping[StoreId, str],
    why: Mapping[StoreId, str],
) -> PreparedStore:
    outcome: Outcome
    reason = verdict.reason
    if str(verdict.store) in restored:
        outcome = "restored"
        if verdict.store in why:
            reason = f"{why[verdict.store]}; what was there is set aside in .snapstore/quarantine"
    elif verdict.store in effects:
        outcome, reason = "mended", effects[verdict.store]
    elif verdict.cause == "unsupported":
        outcome = "unseen"
    elif verdict.kind == "clean" or (
        verdict.kind == "replays" and verdict.resume_offset is not None
    ):
        outcome = "as_it_is"
    elif verdict.kind in ("replays", "wipes"):
        outcome = "rebuilds"
    else:
        outcome = "left"
    return PreparedStore(store=verdict.store, outcome=outcome, reason=reason)

"""Decide what each store needs before the next start, and which tasks an empty disk gets."""

from collections.abc import Callable, Collection, Mapping
from typing import Literal

import msgspec

from snapstore.errors import RefusedError
from snapstore.model.identity import StoreId, natural_order
from snapstore.model.listing import ListedSnapshot
from snapstore.model.units import count
from snapstore.model.verdict import Bounds, Verdict
from snapstore.operations.fsck_report import FsckReport
from snapstore.operations.mend_plan import MendPlan, StoreMend, estimate

Choice = Literal["as_it_is", "unseen", "mend", "restore", "rebuild", "left"]


Saved = Callable[[], Mapping[StoreId, ListedSnapshot]]
"""Looks up the newest snapshot of each store; raises UnavailableError where that cannot be told."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is done about one store; ``reason`` is a sentence.

    ``unseen``: it starts as it is, and only its application can open it. ``rebuild``: the
    application fills it by itself, which is safe; ``left``: nothing can be done.
    ``whole_task``: a restore is of use only together with all other stores of the task.
    """

    store: StoreId
    choice: Choice
    reason: str
    whole_task: bool = False


class Share(msgspec.Struct, frozen=True):
    """The ``number``-th of ``count`` equal parts, from 1."""

    number: int
    count: int


def decide(
    report: FsckReport,
    plan: MendPlan,
    saved: Saved,
    *,
    prefer_snapshots: bool = False,
) -> tuple[Decision, ...]:
    """Return one decision for each store, in the order of the report.

    ``saved`` is called only where a snapshot could help. A snapshot is taken where the application
    would fill the store anew otherwise; with ``prefer_snapshots`` also where a mend would do. A
    task that is given up as a whole is restored only if each of its stores can be: a part would be
    wiped again. A task of which something could not be looked at gets nothing.
    """
    mends = {mend.store: mend for task in plan.tasks for mend in task.stores}
    decisions: list[Decision] = []
    for task in report.tasks:
        wiped = [verdict for verdict in task.verdicts if verdict.kind == "wipes"]
        usable = _nothing if task.facts.unread else saved
        faulty = task.facts.offset_file_fault is not None
        whole = bool(wiped or faulty) and all(
            verdict.store in usable() for verdict in task.verdicts
        )
        if faulty and whole:
            # Without its offsets each store of the task would be replayed whole.
            decisions += [
                Decision(
                    store=verdict.store, choice="restore", reason=verdict.reason, whole_task=True
                )
                for verdict in task.verdicts
            ]
            continue
        for verdict in task.verdicts:
            if wiped and verdict.kind == "wipes":
                decisions.append(_of_wiped(verdict, whole=whole))
            else:
                mend = mends.get(verdict.store)
                decisions.append(_of_store(verdict, mend, usable, prefer_snapshots))
    return tuple(decisions)


def quicker_snapshots(
    plan: MendPlan, saved: Mapping[StoreId, ListedSnapshot], bounds: Bounds | None
) -> tuple[str, ...]:
    """Say in sentences which stores would be up to date sooner from their newest snapshot."""
    told = []
    for mend in (mend for task in plan.tasks for mend in task.stores):
        listed = saved.get(mend.store)
        if listed is None or listed.applied_offset is None or len(mend.changelogs) != 1:
            continue
        log = (bounds or {}).get(mend.changelogs[0])
        if log is None or mend.records is None:
            continue
        records = max(0, log.end - (listed.applied_offset + 1))
        if records < mend.records:
            told.append(
                f"{mend.store}: its newest snapshot at offset {listed.applied_offset} would replay "
                f"{count(records, 'record')} instead, about {estimate(records)}: --from-snapshot"
            )
    return tuple(told)


def choose_tasks(
    known: Collection[str],
    instances_of: Callable[[], Mapping[str, Collection[str]]],
    *,
    instance: str | None = None,
    share: Share | None = None,
    host: str,
) -> tuple[str, ...]:
    """Return the tasks that an instance with an empty disk brings back; none where none is its own.

    ``known`` have snapshots; ``instances_of`` tells at which instances each was ever captured.
    It is a share of all, or those of ``instance`` (default: ``host``). An instance with a standby
    has captured the task too: so it gets back what its disk held, whoever else holds it. Raises
    RefusedError when none was captured at the named ``instance``.
    """
    ordered = sorted(known, key=natural_order)
    if share is not None:
        return tuple(ordered[share.number - 1 :: share.count])
    instances = instances_of() if ordered else {}
    wanted = instance or host
    chosen = tuple(task for task in ordered if wanted in instances.get(task, ()))
    if instance is not None and ordered and not chosen:
        raise RefusedError(
            f"no snapshot of {count(len(ordered), 'task')} was captured at {instance!r}",
            hint="give --task, --share i/n (1/1 for all), or --instance with one of the instances "
            "below",
            instances=sorted({name for names in instances.values() for name in names}),
            tasks=ordered,
        )
    return chosen


def _nothing() -> Mapping[StoreId, ListedSnapshot]:
    return {}


def _of_wiped(verdict: Verdict, *, whole: bool) -> Decision:
    if whole:
        return Decision(
            store=verdict.store, choice="restore", reason=verdict.reason, whole_task=True
        )
    return Decision(store=verdict.store, choice="rebuild", reason=verdict.reason)


def _of_store(
    verdict: Verdict,
    mend: StoreMend | None,
    saved: Saved,
    prefer_snapshots: bool,
) -> Decision:
    if verdict.cause == "unsupported":
        return Decision(store=verdict.store, choice="unseen", reason=verdict.reason)
    if mend is None and verdict.kind in ("unknown", "refuses", "damaged", "loses_rows"):
        return Decision(store=verdict.store, choice="left", reason=verdict.reason)
    if mend is None and verdict.kind == "clean":
        return Decision(store=verdict.store, choice="as_it_is", reason=verdict.reason)
    if mend is None and verdict.resume_offset is not None:
        return Decision(store=verdict.store, choice="as_it_is", reason=verdict.reason)
    anew = mend is None or mend.action in ("set_aside", "drop_line")
    file_only = mend is not None and mend.action == "set_file_aside"
    if not file_only and (anew or prefer_snapshots) and verdict.store in saved():
        return Decision(store=verdict.store, choice="restore", reason=verdict.reason)
    if mend is not None:
        reason = f"{verdict.reason}; {mend.effect}"
        return Decision(store=verdict.store, choice="mend", reason=reason)
    return Decision(store=verdict.store, choice="rebuild", reason=verdict.reason)

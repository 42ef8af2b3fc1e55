"""Decide how the stores of a task are made safe to start with, before anything is written."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.state_facts import OrphanLine, StoreFacts, TaskFacts
from snapstore.model.units import count, format_duration
from snapstore.model.verdict import Bounds, Verdict
from snapstore.operations.fsck_report import CheckedTask, FsckReport

Action = Literal["note_least", "set_aside", "drop_line", "set_file_aside"]

REPLAYED_PER_SECOND: Final = 100_000
"""Records that an application restores in a second, for estimates: 4.4.0 did 274,000 of 112 bytes
with its broker on the same machine."""


class StoreMend(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to one store, why, and what it costs; sentences without a final stop.

    ``least`` are the applied offsets to note in every database; ``paths``, relative to the task
    directory, are moved into quarantine; ``lines`` of offset files go. The application will read
    ``changelogs`` from there on or whole, at most ``records``, None where that cannot be told.
    """

    store: StoreId
    action: Action
    reason: str
    effect: str
    least: Mapping[ChangelogPartition, int] = {}
    paths: tuple[str, ...] = ()
    lines: tuple[OrphanLine, ...] = ()
    changelogs: tuple[ChangelogPartition, ...] = ()
    records: int | None = None


class TaskMend(msgspec.Struct, frozen=True, kw_only=True):
    """All that is done to one task directory; ``notes`` are sentences on what follows from it."""

    facts: TaskFacts
    stores: tuple[StoreMend, ...]
    notes: tuple[str, ...] = ()


class MendPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that need something; ``left`` are verdicts that no mend can change."""

    tasks: tuple[TaskMend, ...]
    left: tuple[Verdict, ...] = ()


def plan_mend(report: FsckReport) -> MendPlan:
    """Return the least that makes every store start right; nothing for one that already does.

    A store that starts clean, replays, or is rebuilt by the application is left as it is: that is
    safe, and a mend could only make it slower. So is a task of which something could not be read.
    """
    planned = [_plan_task(task, report.bounds or {}) for task in report.tasks]
    return MendPlan(
        tasks=tuple(task for task in planned if task.stores),
        left=tuple(
            verdict
            for verdict in report.verdicts
            if verdict.cause in ("version", "topic", "unreadable", "unsupported")
        ),
    )


def estimate(records: int) -> str:
    """Return how long the application takes to replay so many records, in words."""
    return format_duration(records / REPLAYED_PER_SECOND)


def _plan_task(task: CheckedTask, bounds: Bounds) -> TaskMend:
    if task.facts.unread:
        # The task directory is replaced as a whole, and this one cannot be read as a whole.
        return TaskMend(facts=task.facts, stores=())
    if task.facts.offset_file_fault is not None:
        mends = [_file_aside(task)]
    else:
        by_store = {store.store: store for store in task.facts.stores}
        mends = [
            mend
            for verdict in task.verdicts
            if verdict.kind in ("loses_rows", "damaged")
            or (verdict.kind == "refuses" and verdict.cause != "version")
            for mend in [_plan_store(verdict, by_store.get(verdict.store), task.facts, bounds)]
        ]
    return TaskMend(facts=task.facts, stores=tuple(mends), notes=_notes(task, mends))


def _file_aside(task: CheckedTask) -> StoreMend:
    verdict = task.verdicts[0]
    files = ", ".join(task.facts.unreadable_files)
    return StoreMend(
        store=verdict.store,
        action="set_file_aside",
        reason=verdict.reason,
        effect=f"{files} is set aside, and the stores of the task whose offset it held are "
        "replayed whole",
        paths=task.facts.unreadable_files,
    )


def _plan_store(
    verdict: Verdict, store: StoreFacts | None, task: TaskFacts, bounds: Bounds
) -> StoreMend:
    if store is None:
        return _drop_line(verdict, task, bounds)
    # Rows that go while the offset of their store stays are never read again.
    strangers = tuple(each.file for each in store.damage if each.stranger and not each.holds_rows)
    if strangers and len(strangers) == len(store.damage):
        return StoreMend(
            store=store.store,
            action="set_file_aside",
            reason=verdict.reason,
            effect=f"{', '.join(strangers)} is set aside",
            paths=strangers,
        )
    if verdict.cause != "uneven":
        return _set_aside(verdict, store, bounds)
    least = _least(store)
    for changelog, applied in least.items():
        log = bounds.get(changelog)
        if log is not None and applied + 1 < log.start:
            return _set_aside(
                verdict,
                store,
                bounds,
                f"its least offset {applied} lies before the start of {changelog} at {log.start}, "
                "and what is between cannot be read again, so ",
            )
    records = _total(
        None if log is None else log.end - (applied + 1)
        for changelog, applied in least.items()
        for log in [bounds.get(changelog)]
    )
    return StoreMend(
        store=store.store,
        action="note_least",
        reason=verdict.reason,
        effect=f"{_offsets(least)} is noted in {_all(len(store.databases))}, "
        f"and the application replays {_cost(records, 'what follows')} from there",
        least=least,
        changelogs=tuple(least),
        records=records,
    )


def _drop_line(verdict: Verdict, task: TaskFacts, bounds: Bounds) -> StoreMend:
    lines = tuple(line for line in task.orphans if line.store == verdict.store)
    records = _total(_span(line.changelog, bounds) for line in lines)
    return StoreMend(
        store=verdict.store,
        action="drop_line",
        reason=verdict.reason,
        effect=f"its line in {lines[0].file} is removed, and the store is filled from "
        f"{_cost(records)}",
        lines=lines,
        changelogs=tuple(line.changelog for line in lines),
        records=records,
    )


def _set_aside(verdict: Verdict, store: StoreFacts, bounds: Bounds, why: str = "") -> StoreMend:
    changelogs = store.changelogs or ((store.presumed,) if store.presumed is not None else ())
    records = _total(_span(changelog, bounds) for changelog in changelogs)
    return StoreMend(
        store=store.store,
        action="set_aside",
        reason=verdict.reason,
        effect=f"{why}its files are set aside, and the application replays {_cost(records)}",
        paths=(store.location.root, *store.location.side_files),
        changelogs=changelogs,
        records=records,
    )


def _least(store: StoreFacts) -> dict[ChangelogPartition, int]:
    """Return the least applied offset of every changelog partition, a line included."""
    least = {}
    for changelog in store.changelogs:
        applied = store.noted(changelog).applied_offset
        line = store.lines.get(changelog)
        known = [at for at in (applied, line) if at is not None]
        if known:
            least[changelog] = min(known)
    return least


def _notes(task: CheckedTask, mends: Sequence[StoreMend]) -> tuple[str, ...]:
    gone = [mend for mend in mends if mend.action in ("set_aside", "drop_line")]
    if not gone or "exactly_once" not in task.conditions.guarantees:
        return ()
    certain = task.conditions.guarantees == ("exactly_once",)
    return (
        f"task {task.facts.task}: "
        + ("under exactly-once" if certain else "if the application is exactly-once")
        + " and its stores are not transactional, it rebuilds a whole task that lacks a store",
    )


def _span(changelog: ChangelogPartition, bounds: Bounds) -> int | None:
    log = bounds.get(changelog)
    return None if log is None else log.end - log.start


def _total(counts: Iterable[int | None]) -> int | None:
    total = None
    for number in counts:
        if number is None:
            return None
        total = number + (total or 0)
    return total


def _cost(records: int | None, otherwise: str = "all of its changelog") -> str:
    if records is None:
        return otherwise
    return f"{count(records, 'record')}, about {estimate(records)}"


def _offsets(least: Mapping[ChangelogPartition, int]) -> str:
    if len(least) == 1:
        return f"the least offset {next(iter(least.values()))}"
    told = ", ".join(f"{applied} of {changelog}" for changelog, applied in sorted(least.items()))
    return f"the least offset ({told})"


def _all(databases: int) -> str:
    return "its database" if databases == 1 else f"all {databases} databases"

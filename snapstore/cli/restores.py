"""How a restore is shown: its plan and its report."""

from collections.abc import Mapping
from typing import Any

import msgspec

from snapstore.cli.sentences import told
from snapstore.cli.text import Column, count, plain, short, table
from snapstore.model.units import format_duration, format_size
from snapstore.operations.restore_plan import RestorePlan, StorePlan, TaskPlan
from snapstore.operations.restore_report import RestoredStore, RestoreReport

_REBUILT = "what is there of it stays, else the application fills it from its changelog"


def plan_document(plan: RestorePlan) -> dict[str, Any]:
    """Return what a restore would do."""
    return {
        "target": plan.target,
        "items": [_task_document(task) for task in plan.tasks],
        "unrestorable": {str(store): reason for store, reason in plan.left_out.items()},
        "notes": plan.notes,
    }


def plan_lines(plan: RestorePlan) -> list[str]:
    """Return the table of what a restore would do."""
    if not plan.tasks and not plan.left_out:
        return ["there is no snapshot: nothing would be done"]
    columns = (
        Column("task directory", cut=True),
        Column("store", cut=True),
        Column("snapshot"),
        Column("fetch", right=True, spare=1),
        Column("there", right=True, spare=2),
        Column("action"),
    )
    rows = [
        (
            str(task.task_dir),
            store.store.store,
            short(store.wanted.snapshot.id),
            format_size(store.fetch_bytes),
            format_size(store.reuse_bytes),
            "replace" if task.replaces else "create",
        )
        for task in plan.tasks
        for store in task.stores
    ]
    fetched = sum(store.fetch_bytes for task in plan.tasks for store in task.stores)
    needed = sum(task.needed_bytes for task in plan.tasks)
    return [
        *table(columns, rows),
        *told(
            (store, f"not restored: {reason}; {_REBUILT}")
            for store, reason in plan.left_out.items()
        ),
        f"would restore {count(len(rows), 'store')}: {format_size(fetched)} to fetch,"
        f" {format_size(needed)} of disk needed"
        + (f", {format_size(plan.tasks[0].free_bytes)} free" if plan.tasks else ""),
    ]


def report_document(report: RestoreReport) -> dict[str, Any]:
    """Return what a restore has done."""
    return {
        "target": report.target,
        "items": report.stores,
        "kept_stores": report.kept_stores,
        "replaced": report.replaced,
        "failed": report.failed,
        "unrestorable": report.unrestorable,
        "notes": report.notes,
        "fetched_bytes": report.fetched_bytes,
        "reused_bytes": report.reused_bytes,
    }


def report_from_facts(facts: Mapping[str, object]) -> RestoreReport:
    """Return the report that a partial failure carries."""
    return msgspec.convert(facts["report"], RestoreReport, dec_hook=lambda kind, raw: kind(raw))


def report_lines(report: RestoreReport, seconds: float) -> list[str]:
    """Return the table of what a restore has done; the last line says what it saved."""
    if not (report.stores or report.failed or report.unrestorable):
        return ["there is no snapshot: nothing was done"]
    columns = (
        Column("store", cut=True),
        Column("snapshot"),
        Column("fetched", right=True, spare=2),
        Column("was there", right=True, spare=3),
        Column("replay from", spare=1),
        Column("records", right=True),
    )
    lines = table(columns, [_row(store) for store in report.stores])
    lines += [f"kept: {path}" for path in report.replaced]
    lines += [
        plain(f"{each.store}: not restored: {each.reason}; {_REBUILT}")
        for each in report.unrestorable
    ]
    lines += [f"failed: {task.task_dir}: {task.reason}" for task in report.failed]
    known = [store.records_to_replay for store in report.stores]
    to_replay = [records for records in known if records is not None]
    replayed = sum(each.records for store in report.stores for each in store.replayed)
    done = f"{count(replayed, 'record')} replayed, " if replayed else ""
    replay = (
        f"{done}{count(sum(to_replay), 'record')} to replay"
        if len(to_replay) == len(known)
        else "the application replays from those offsets"
    )
    files = sum(store.fetched_files for store in report.stores)
    return [
        *lines,
        f"restored {count(len(report.stores), 'store')}: {count(files, 'file')} fetched,"
        f" {format_size(report.fetched_bytes)};"
        f" {sum(store.reused_files for store in report.stores):,} were there,"
        f" {format_size(report.reused_bytes)}; {replay}; {format_duration(seconds)}",
    ]


def _row(store: RestoredStore) -> tuple[str, ...]:
    return (
        store.store,
        short(store.snapshot_id),
        format_size(store.fetched_bytes),
        format_size(store.reused_bytes),
        ", ".join(f"{name}@{start}" for name, start in store.resume_offsets.items()) or "-",
        "" if store.records_to_replay is None else f"{store.records_to_replay:,}",
    )


def _task_document(task: TaskPlan) -> dict[str, Any]:
    return {
        "task_dir": task.task_dir,
        "replaces": task.replaces,
        "kept_stores": task.kept_stores,
        "needed_bytes": task.needed_bytes,
        "freed_bytes": task.freed_bytes,
        "free_bytes": task.free_bytes,
        "left_out": task.left_out,
        "goes_back": [
            {
                "store": step.store,
                "changelog": str(step.changelog),
                "target_offset": step.there,
                "snapshot_offset": step.snapshot,
                "offsets": step.back,
            }
            for step in task.steps
            if step.back
        ],
        "stores": [_store_document(store) for store in task.stores],
    }


def _store_document(store: StorePlan) -> dict[str, Any]:
    return {
        "store": str(store.store),
        "snapshot": store.wanted.snapshot.id,
        "fetch_files": sum(len(fetch.names) for fetch in store.fetch),
        "fetch_bytes": store.fetch_bytes,
        "reuse_files": len(store.reuse),
        "reuse_bytes": store.reuse_bytes,
        "records_to_replay": store.wanted.records_to_replay,
        "skipped": store.wanted.skipped,
    }

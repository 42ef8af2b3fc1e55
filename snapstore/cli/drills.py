"""How a drill is shown: as a table with sentences, and as JSON."""

from collections.abc import Mapping
from typing import Any, Final

from snapstore.cli.text import Column, count, plain, short, table
from snapstore.model.units import format_duration
from snapstore.operations.drill_report import OUTCOMES, DrilledStore, DrillReport, Outcome

WORDS: Final[Mapping[Outcome, str]] = {
    "equal": "equal",
    "partly": "equal as far as compared",
    "skipped": "skipped",
    "unavailable": "could not find out",
    "refused": "refused",
    "damaged": "DAMAGED",
    "differs": "DIFFERS",
}
_COLUMNS = (
    Column("application", cut=True, spare=1),
    Column("task"),
    Column("store", cut=True),
    Column("snapshot"),
    Column("restore", right=True),
    Column("replay", right=True, spare=2),
    Column("tail", right=True, spare=5),
    Column("rebuild", right=True, spare=2),
    Column("log", right=True, spare=4),
    Column("pairs", right=True, spare=3),
    Column("outcome"),
)


def report_document(report: DrillReport, exit_code: int) -> dict[str, Any]:
    """Return what a drill has found."""
    return {
        "outcome": report.worst,
        "candidates": report.candidates,
        "seed": report.seed,
        "exit_code": exit_code,
        "items": [_store_document(store) for store in report.stores],
    }


def report_lines(report: DrillReport, seconds: float) -> list[str]:
    """Return the table, what is to be said of single stores, and what the snapshots are worth."""
    lines = table(_COLUMNS, [_row(store) for store in report.stores])
    for store in report.stores:
        if told := _sentences(store):
            lines += ["", plain(str(store.store)), *(f"  {plain(each)}" for each in told)]
    return [*lines, "", _worth(report), _total(report, seconds)]


def _row(store: DrilledStore) -> tuple[str, ...]:
    timing, comparison = store.timing, store.comparison
    replayed = sum(each.replayed_records for each in store.partitions)
    rebuilt = sum(each.rebuilt_records for each in store.partitions)
    return (
        store.store.application,
        store.store.task,
        store.store.store,
        "-" if store.snapshot_id is None else short(store.snapshot_id),
        "" if timing is None else format_duration(timing.restore_seconds),
        "" if timing is None else format_duration(timing.replay_seconds),
        "" if timing is None else f"{replayed:,}",
        "" if timing is None else format_duration(timing.rebuild_seconds),
        "" if timing is None else f"{rebuilt:,}",
        "" if comparison is None else f"{comparison.pairs:,}",
        WORDS[store.outcome],
    )


def _sentences(store: DrilledStore) -> list[str]:
    told = [] if store.reason is None else [store.reason]
    told += [
        f"{short(each.snapshot_id)} was passed over: {each.reason}" for each in store.passed_over
    ]
    if store.comparison is not None:
        for each in store.comparison.differences:
            told += [
                f"{each.kind.replace('_', ' ')}: {each.key} in {each.database}, {each.family}",
                f"  restored {each.restored or 'nothing'}, rebuilt {each.rebuilt or 'nothing'}",
            ]
    return told


def _worth(report: DrillReport) -> str:
    timed = [store for store in report.stores if store.timing is not None]
    timings = [store.timing for store in timed if store.timing is not None]
    if not timings:
        return "nothing was restored and compared"
    recovery = sum(timing.recovery_seconds for timing in timings)
    rebuild = sum(timing.rebuild_seconds for timing in timings)
    behind = sum(store.behind_records or 0 for store in timed)
    oldest = max(store.age_seconds or 0 for store in timed)
    return (
        f"back in {format_duration(recovery)} (restore and replay), {format_duration(rebuild)} from"
        f" the changelog alone; without the changelog {count(behind, 'record')} of the last"
        f" {format_duration(max(oldest, 0))} would be lost"
    )


def _total(report: DrillReport, seconds: float) -> str:
    outcomes = [store.outcome for store in report.stores]
    parts = [
        f"{outcomes.count(each)} {WORDS[each].lower()}"
        for each in reversed(OUTCOMES)
        if each in outcomes
    ]
    drawn = f" of {report.candidates}" if report.candidates > len(outcomes) else ""
    return f"{count(len(outcomes), 'store')}{drawn}: {', '.join(parts)}; {format_duration(seconds)}"


def _store_document(store: DrilledStore) -> dict[str, Any]:
    timing, comparison = store.timing, store.comparison
    return {
        "application": store.store.application,
        "task": store.store.task,
        "store": store.store.store,
        "outcome": store.outcome,
        "code": store.code,
        "reason": store.reason,
        "snapshot": store.snapshot_id,
        "captured_at": store.captured_at,
        "passed_over": store.passed_over,
        "rpo": {"age": store.age_seconds, "records": store.behind_records},
        "rto": None if timing is None else timing.recovery_seconds,
        "restored_bytes": None if timing is None else timing.restored_bytes,
        "restore_seconds": None if timing is None else timing.restore_seconds,
        "replay_seconds": None if timing is None else timing.replay_seconds,
        "rebuild_seconds": None if timing is None else timing.rebuild_seconds,
        "partitions": store.partitions,
        "pairs": None if comparison is None else comparison.pairs,
        "digests": [] if comparison is None else comparison.families,
        "different_keys": None if comparison is None else comparison.different_keys,
        "differences": [] if comparison is None else comparison.differences,
        "not_compared": [] if comparison is None else comparison.not_compared,
        "seconds": store.seconds,
    }

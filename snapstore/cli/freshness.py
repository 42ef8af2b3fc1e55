"""How the state of the snapshots is shown: as a table with sentences, and as JSON."""

from collections.abc import Mapping
from typing import Any, Final

from snapstore.cli.folding import SHOWN, kind_of
from snapstore.cli.sentences import named
from snapstore.cli.text import Column, count, moment, plain, short, table
from snapstore.model.freshness import (
    STANDINGS,
    FreshnessReport,
    PartitionFreshness,
    Standing,
    StoreFreshness,
    worst_standing,
)
from snapstore.model.identity import StoreId
from snapstore.model.units import format_duration, format_size

WORDS: Final[Mapping[Standing, str]] = {
    "usable": "usable",
    "older": "older one usable",
    "unchecked": "unchecked",
    "unknown": "could not find out",
    "none": "NO SNAPSHOT",
    "unusable": "UNUSABLE",
}
_OF_SEVERAL: Final[Mapping[Standing, str]] = {
    **{standing: word.lower() for standing, word in WORDS.items()},
    "older": "older ones usable",
    "none": "without a snapshot",
}
_NAMED: Final = 10
"""Stores on one line."""
_COLUMNS = (
    Column("application", cut=True),
    Column("task"),
    Column("store", cut=True),
    Column("snapshot"),
    Column("age", right=True, spare=1),
    Column("behind", right=True),
    Column("about", right=True, spare=4),
    Column("restore", right=True, spare=3),
    Column("usable until", spare=2),
    Column("verdict"),
)


def report_document(report: FreshnessReport, exit_code: int) -> dict[str, Any]:
    """Return the state of every store; times that are not known are null."""
    return {
        "standing": worst_standing(report.stores),
        "rates": report.rates,
        "exit_code": exit_code,
        "items": [_store_document(store) for store in report.stores],
    }


def report_lines(report: FreshnessReport) -> list[str]:
    """Return the table of all stores, what is to be said of single ones, and a total."""
    lines = table(_COLUMNS, [_row(store) for store in report.stores])
    lines += _remarks(report)
    if trims := _trims(report):
        lines += ["", *trims]
    return [*lines, "", _restore_line(report), _total(report)]


def _remarks(report: FreshnessReport) -> list[str]:
    """Return what is to be said of stores: of the first few in full where many are alike."""
    alike: dict[tuple[str, ...], dict[tuple[str, ...], list[StoreId]]] = {}
    for store in report.stores:
        if sentences := tuple(_sentences(store)):
            same = alike.setdefault(tuple(map(kind_of, sentences)), {})
            same.setdefault(sentences, []).append(store.store)
    lines: list[str] = []
    for said in alike.values():
        shown = [*said.items()][:SHOWN]
        for sentences, stores in shown:
            few = named(stores[:_NAMED], "")
            more = f", and {len(stores) - _NAMED:,} more" if len(stores) > _NAMED else ""
            lines += ["", few + more, *(f"  {plain(each)}" for each in sentences)]
        rest = sum(map(len, said.values())) - sum(len(stores) for _, stores in shown)
        if rest:
            lines += ["", f"{count(rest, 'store')} more like this (all with --json)"]
    return lines


def _row(store: StoreFreshness) -> tuple[str, ...]:
    until = store.usable_until
    unknown = store.used is not None and store.standing in ("unchecked", "unknown")
    return (
        store.store.application,
        store.store.task,
        store.store.store,
        "-" if store.used is None else short(store.used.id),
        "" if store.age is None else format_duration(store.age.total_seconds()),
        "?" if unknown else "" if store.lag_records is None else f"{store.lag_records:,}",
        "" if store.lag_bytes is None else format_size(store.lag_bytes),
        "" if store.restore_seconds is None else format_duration(store.restore_seconds),
        "?" if unknown else "" if until is None else moment(until),
        WORDS[store.standing] + (", OVER" if store.over and store.used is not None else ""),
    )


def _sentences(store: StoreFreshness) -> list[str]:
    told = [
        f"{short(each.snapshot_id)} was passed over: {each.reason}" for each in store.passed_over
    ]
    if store.reason is not None and not store.passed_over:
        told.append(store.reason)
    if store.used is not None:
        told += store.over
    return [*told, *store.advice]


def _trims(report: FreshnessReport) -> list[str]:
    rows = [
        (str(changelog), str(offset))
        for store in report.stores
        for changelog, offset in (store.safe_trim_offsets or {}).items()
    ]
    return table(
        (Column("changelog", cut=True), Column("in every kept snapshot before", right=True)), rows
    )


def _restore_line(report: FreshnessReport) -> str:
    rates = report.rates
    if rates is None:
        return (
            "restore times are not estimated: no drill on this host has measured them; give"
            " --download-rate and --replay-rate"
        )
    return (
        f"restore times: {format_size(round(rates.download_bytes_per_second))}/s and"
        f" {rates.replay_records_per_second:,.0f} records/s, {rates.origin}"
    )


def _total(report: FreshnessReport) -> str:
    standings = [store.standing for store in report.stores]
    parts = [
        count(standings.count(each), WORDS[each].lower(), _OF_SEVERAL.get(each))
        for each in reversed(STANDINGS)
        if each in standings
    ]
    over = f"; {len(report.over)} to be looked at" if report.over else ""
    return f"{count(len(standings), 'store')}: {', '.join(parts)}{over}"


def _store_document(store: StoreFreshness) -> dict[str, Any]:
    trims = store.safe_trim_offsets
    return {
        "application": store.store.application,
        "task": store.store.task,
        "store": store.store.store,
        "standing": store.standing,
        "code": store.code,
        "reason": store.reason,
        "snapshots": store.snapshots,
        "newest": None if store.newest is None else store.newest.id,
        "used": None if store.used is None else store.used.id,
        "captured_at": None if store.used is None else store.used.captured_at,
        "age": store.age,
        "size_bytes": store.size_bytes,
        "lag_records": store.lag_records,
        "lag_bytes": store.lag_bytes,
        "restore_seconds": store.restore_seconds,
        "usable_until": store.usable_until,
        "partitions": [_partition_document(each) for each in store.partitions],
        "passed_over": store.passed_over,
        "safe_trim_offsets": None
        if trims is None
        else {str(changelog): offset for changelog, offset in trims.items()},
        "over": store.over,
        "advice": store.advice,
    }


def _partition_document(partition: PartitionFreshness) -> dict[str, Any]:
    limit = partition.limit
    return {
        "topic": partition.changelog.topic,
        "partition": partition.changelog.partition,
        "applied_offset": partition.applied_offset,
        "log_start": partition.log_start,
        "log_end": partition.log_end,
        "lag_records": partition.lag_records,
        "lag_bytes": partition.lag_bytes,
        "usable_until": None if limit is None else limit.until,
        "usable_until_cause": None if limit is None else limit.cause,
    }

"""`snapstore prune`: remove old snapshots, free the bytes that nothing names."""

from datetime import timedelta
from typing import Any

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    Duration,
    accept_earlier_clock_option,
    application_option,
    dry_run_option,
)
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document
from snapstore.cli.text import Column, count, moment, offset, short, table
from snapstore.errors import IntegrityError, PartialFailureError
from snapstore.model.units import format_duration, format_size, spell_duration
from snapstore.operations.prune_report import Amount, PruneReport

_KEEP = click.IntRange(min=0)


@click.command(
    "prune",
    cls=Verb,
    short_help="Remove old snapshots and free their bytes.",
    examples=(
        "snapstore prune --dry-run",
        "snapstore prune --keep-last 3 --keep-daily 7 --keep-within 2d",
    ),
)
@application_option
@click.option("--keep-last", type=_KEEP, metavar="N", help="Of each store the newest N.")
@click.option("--keep-within", type=Duration(), metavar="AGE", help="All younger ones, as 7d.")
@click.option("--keep-hourly", type=_KEEP, metavar="N", help="The newest of each of N hours.")
@click.option("--keep-daily", type=_KEEP, metavar="N", help="The newest of each of N days.")
@click.option("--keep-weekly", type=_KEEP, metavar="N", help="The newest of each of N weeks.")
@click.option("--keep-monthly", type=_KEEP, metavar="N", help="The newest of each of N months.")
@click.option("--keep-yearly", type=_KEEP, metavar="N", help="The newest of each of N years.")
@accept_earlier_clock_option
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    /,
    application: str | None,
    accept_earlier_clock: bool,
    dry_run: bool,
    keep_within: timedelta | None,
    **counts: int | None,
) -> None:
    """Take out of the catalog what no rule keeps, then free bytes that no snapshot names.

    Rules come from the configuration (section retention) and from these options; what any rule
    keeps is kept, and so are pinned snapshots and the newest usable one of each store. Bytes go in
    two steps: this run marks them, and one that comes after the wait deletes them.
    """
    given: dict[str, tuple[object, str]] = {
        f"retention.{name}": (value, f"--{name.replace('_', '-')}")
        for name, value in {**counts, "keep_within": keep_within}.items()
    }
    with (
        client.open(config=session.config(given), listener=session.hear) as repository,
        session.reporting() as reporter,
    ):
        report = repository.prune(
            application=application,
            accept_earlier_clock=accept_earlier_clock,
            listener=reporter,
            dry_run=dry_run,
        )
    if dry_run:
        for note in report.notes:
            session.note(note)
    troubled = report.failed or report.unjudged or report.doubtful
    answer = session.answer if dry_run or troubled else session.done
    kind = "prune_plan" if dry_run else "prune_report"
    answer(kind, _document(report), _lines(report, session.elapsed))
    if report.failed:
        raise PartialFailureError(
            f"{count(len(report.failed), 'object')} could not be deleted, the rest is done:"
            f" {report.failed[0]}",
            hint="run again",
            failed=list(report.failed),
        )
    if report.unjudged:
        raise IntegrityError(
            f"no blob was condemned or deleted: {report.unjudged[0]}",
            hint="see what is wrong: snapstore verify --catalog; then snapstore repair",
            reasons=list(report.unjudged),
        )
    if report.doubtful:
        listed, doubt = next(iter(report.doubtful.items()))
        raise PartialFailureError(
            f"{count(len(report.doubtful), 'snapshot')} cannot be what the catalog says, and was"
            f" passed over: {short(listed.id)} of {listed.store}: {doubt}",
            hint="set wrong clocks right; look at it and delete it by hand: snapstore show"
            f" {short(listed.id)}; snapstore delete {short(listed.id)}",
            doubtful=[item.id for item in report.doubtful],
        )


def _document(report: PruneReport) -> dict[str, Any]:
    return {
        "dry_run": report.dry_run,
        "items": [
            {
                **listed_document(decision.listed, pinned="pinned" in decision.reasons),
                "kept": decision.kept,
                "reasons": decision.reasons,
            }
            for decision in report.decisions
        ],
        "removed": len(report.removed),
        "freed_bytes": report.freed.size_bytes,
        "kept_as_versions": report.kept_as_versions,
        "deleted_blobs": report.deleted_blobs,
        "deleted_manifests": report.deleted_manifests,
        "aborted_uploads": report.aborted_uploads,
        "condemned": report.condemned,
        "waiting": report.waiting,
        "wait": report.wait,
        "waiting_until": report.waiting_until,
        "young": report.young,
        "young_until": report.young_until,
        "lost": report.lost,
        "unjudged": report.unjudged,
        "failed": report.failed,
        "doubtful": [
            {**listed_document(listed, pinned=False), "reason": doubt}
            for listed, doubt in report.doubtful.items()
        ],
    }


def _lines(report: PruneReport, seconds: float) -> list[str]:
    columns = (
        Column("verdict"),
        Column("id"),
        Column("store", cut=True),
        Column("offset", right=True, spare=1),
        Column("captured", spare=2),
        Column("because", below=True),
    )
    rows = [
        (
            "keep" if decision.kept else "remove",
            short(decision.listed.id),
            str(decision.listed.store),
            offset(decision.listed.applied_offset),
            moment(decision.listed.captured_at),
            "; ".join(decision.reasons),
        )
        for decision in report.decisions
    ]
    would = "would be " if report.dry_run else ""
    lines = [
        *table(columns, rows),
        f"{count(len(report.removed), 'snapshot')} of {len(report.decisions)} {would}removed",
        f"{_spell(report.condemned)} {would}marked, {_spell(report.waiting)} marked before:"
        f" a prune {spell_duration(report.wait)} after the mark frees them"
        + (f", the first from {moment(report.waiting_until)} on" if report.waiting_until else ""),
    ]
    if report.young_until is not None:
        lines.append(
            f"{_spell(report.young)} that no snapshot names are too young to be marked: a run may"
            f" still need them; a prune from {moment(report.young_until)} on marks the first"
        )
    if report.aborted_uploads:
        uploads = count(report.aborted_uploads, "unfinished upload")
        lines.append(f"{uploads} {would}removed")
    freed = format_size(report.freed.size_bytes)
    blobs = count(report.deleted_blobs.count, "blob")
    manifests = count(report.deleted_manifests.count, "manifest")
    moved = f"{blobs}, {manifests}; {format_duration(seconds)}"
    if report.kept_as_versions.count:
        kept = format_size(report.kept_as_versions.size_bytes)
        moved = f"{kept} {would}deleted, and kept by the bucket as old versions: {moved}"
    lines.append(f"{freed} {would}freed: {moved}")
    return lines


def _spell(amount: Amount) -> str:
    return f"{count(amount.count, 'blob')} ({format_size(amount.size_bytes)})"

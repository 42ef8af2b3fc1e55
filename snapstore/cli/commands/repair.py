"""`snapstore repair`: bring catalog and storage into agreement."""

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    accept_earlier_clock_option,
    dry_run_option,
    limit_rate_option,
)
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document
from snapstore.cli.text import Column, count, moment, offset, short, table
from snapstore.errors import IntegrityError
from snapstore.model.units import format_duration
from snapstore.operations.repair_plan import RepairReport


@click.command(
    "repair",
    cls=Verb,
    short_help="Rebuild lost catalog entries; take out what cannot be restored.",
    examples=("snapstore repair --dry-run", "snapstore repair --read-data --limit-rate 50MiB"),
)
@click.option("--read-data", is_flag=True, help="Read every blob and compare its hash.")
@limit_rate_option
@accept_earlier_clock_option
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    read_data: bool,
    limit_rate: int | None,
    accept_earlier_clock: bool,
    dry_run: bool,
) -> None:
    """Rebuild catalog entries that were lost or damaged, from the manifests.

    Snapshots whose bytes are gone are taken out of the catalog, so that no restore tries them; what
    is taken out is kept below quarantine/ in the repository. Those snapshots are named, and the
    exit code is 4. A snapstore.json that is lost is put back from its copy, and keys that mean
    nothing are moved to the quarantine.
    """
    config = session.config({"transfer.limit_rate": (limit_rate, "--limit-rate")})
    with (
        session.reporting() as reporter,
        client.open_to_repair(config=config, listener=reporter, dry_run=dry_run) as repository,
    ):
        report = repository.repair(
            read_data=read_data,
            accept_earlier_clock=accept_earlier_clock,
            listener=reporter,
            dry_run=dry_run,
        )
    if dry_run:
        for note in report.notes:
            session.note(note)
    body = {
        "dry_run": dry_run,
        "run": report.run,
        "rebuilt": _documents(report, "rebuilt"),
        "quarantined": _documents(report, "quarantined"),
        "left": _documents(report, "left"),
        "condemned_blobs": report.condemned,
        "strange_keys": [*report.strange, *report.garbage],
        "passed_over_manifests": report.passed_over,
    }
    kind = "repair_plan" if dry_run else "repair_report"
    lines = _lines(report, session.elapsed)
    if not (report.quarantined or report.left):
        session.done(kind, body, lines)
        return
    session.answer(kind, body, lines)
    lost = [*report.quarantined, *report.left]
    raise IntegrityError(
        f"{count(len(lost), 'snapshot')} cannot be restored: {lost[0].reason}",
        hint="take a new snapshot while the application still has the store",
        snapshots=[short(each.listed.id) for each in lost],
    )


def _documents(report: RepairReport, what: str) -> list[dict[str, object]]:
    return [
        {**listed_document(each.listed, pinned=False), "reason": each.reason}
        for each in getattr(report, what)
    ]


def _lines(report: RepairReport, seconds: float) -> list[str]:
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
            verdict,
            short(each.listed.id),
            str(each.listed.store),
            offset(each.listed.applied_offset),
            moment(each.listed.captured_at),
            each.reason,
        )
        for verdict, group in (
            ("rebuild", report.rebuilt),
            ("quarantine", report.quarantined),
            ("leave", report.left),
        )
        for each in group
    ]
    would = "would be " if report.dry_run else ""
    lines = table(columns, rows)
    if report.condemned:
        lines.append(f"{count(len(report.condemned), 'blob')} {would}marked: no run relies on them")
    if strange := len(report.strange) + len(report.garbage):
        lines.append(f"{count(strange, 'strange key')} {would}put into the quarantine")
    lines.append(
        f"{count(len(report.rebuilt), 'snapshot')} {would}rebuilt,"
        f" {len(report.quarantined)} {would}put into the quarantine; {format_duration(seconds)}"
    )
    return lines

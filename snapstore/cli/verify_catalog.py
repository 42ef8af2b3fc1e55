"""The answer of `snapstore verify --catalog`."""

from collections.abc import Iterable

from snapstore import client
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document
from snapstore.cli.text import Column, count, moment, offset, short, table
from snapstore.config import Config
from snapstore.errors import IntegrityError
from snapstore.model.listing import ListedSnapshot
from snapstore.model.units import format_duration, format_size
from snapstore.operations.repair_plan import RepositoryReport

_Row = tuple[str, ListedSnapshot, str]


def verify_catalog(session: Session, config: Config) -> None:
    """Compare catalog and storage, and tell. Raises IntegrityError when they do not agree."""
    with client.open(config=config, listener=session.hear) as repository:
        report = repository.verify_repository()
    body = {
        "sound": report.sound,
        "snapshots": report.snapshots,
        "blobs": report.blobs,
        "blob_bytes": report.blob_bytes,
        "unnamed_blobs": report.unnamed_blobs,
        "unnamed_bytes": report.unnamed_bytes,
        "condemned_blobs": report.condemned_blobs,
        "unfinished_manifests": report.unfinished,
        "removed_manifests": report.removed,
        "hopeless_manifests": [orphan.id for orphan in report.found.hopeless],
        "newer": report.found.newer,
        "foreign_keys": report.foreign,
        "items": [
            {**listed_document(listed, pinned=False), "fault": fault, "reason": reason}
            for fault, listed, reason in _rows(report)
        ],
    }
    for key in report.foreign:
        session.note(f"{key} means nothing in a repository")
    lines = [*_table(_rows(report)), *_summary(report, session.elapsed)]
    if report.sound:
        session.done("repository_verification", body, lines)
        return
    session.answer("repository_verification", body, lines)
    raise IntegrityError(
        "catalog and storage do not agree",
        hint="see what would be done: snapstore repair --dry-run",
        faults=len([*_rows(report)]) + len(report.found.newer) + len(report.found.strange),
    )


def _rows(report: RepositoryReport) -> Iterable[_Row]:
    found = report.found
    for listed in found.rebuild:
        yield "lost entry", listed, "its manifest and all its bytes are there"
    for each in (*found.rewrite, *found.quarantine, *found.archived):
        yield each.fault or "", each.listed, each.damage or ""


def _table(rows: Iterable[_Row]) -> list[str]:
    columns = (
        Column("fault"),
        Column("id"),
        Column("store", cut=True),
        Column("offset", right=True, spare=2),
        Column("captured", spare=1),
        Column("reason", below=True),
    )
    return table(
        columns,
        [
            (
                fault,
                short(listed.id),
                str(listed.store),
                offset(listed.applied_offset),
                moment(listed.captured_at),
                reason,
            )
            for fault, listed, reason in rows
        ],
    )


def _summary(report: RepositoryReport, seconds: float) -> list[str]:
    lines = [
        f"{count(report.snapshots, 'snapshot')}, {count(report.blobs, 'blob')}"
        f" ({format_size(report.blob_bytes)})",
    ]
    if report.unnamed_blobs:
        lines.append(
            f"{count(report.unnamed_blobs, 'blob')} ({format_size(report.unnamed_bytes)}) that no"
            f" snapshot names, {report.condemned_blobs} of them marked: prune frees them in time"
        )
    for number, what in (
        (report.unfinished, "may yet be published"),
        (report.removed, "of removed snapshots"),
        (len(report.found.hopeless), "without an entry and without all their bytes"),
        (len(report.found.newer), "written by a newer snapstore"),
    ):
        if number:
            lines.append(f"{count(number, 'manifest')} {what}")
    agree = "agree" if report.sound else "do not agree"
    lines.append(f"catalog and storage {agree}; {format_duration(seconds)}")
    return lines

"""`snapstore snapshot`: take snapshots."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    Tag,
    application_option,
    dry_run_option,
    layout_option,
    limit_rate_option,
    parallel_option,
    state_dir_option,
)
from snapstore.cli.sentences import complaints, told
from snapstore.cli.session import Session, path_override
from snapstore.cli.snapshots import snapshot_document
from snapstore.cli.stores import (
    discovered_document,
    discovered_table,
    error_document,
    missed_error,
    nothing_taken,
    reason,
    unread_document,
)
from snapstore.cli.text import Column, count, offset, short, table
from snapstore.errors import PartialFailureError, SnapstoreError
from snapstore.model.identity import StoreId
from snapstore.model.units import format_duration, format_size
from snapstore.operations.snapshot_report import SnapshotReport, StoreOutcome

if TYPE_CHECKING:
    from snapstore.client import SnapshotVerbs
    from snapstore.operations.capture_choice import CaptureMode

_COUNTED: Final = ("new_files", "new_bytes", "reused_files", "reused_bytes")


@click.command(
    "snapshot",
    cls=Verb,
    short_help="Take snapshots of all or the named stores.",
    examples=(
        "snapstore snapshot --state-dir /var/lib/kafka-streams",
        "snapstore snapshot counts totals --tag release=42",
        "snapstore snapshot --skip-unchanged --limit-rate 20MiB -q",
    ),
)
@click.argument("stores", metavar="[STORE...]", nargs=-1)
@state_dir_option
@layout_option
@application_option
@click.option("--task", "tasks", multiple=True, metavar="TASK", help="Only this task; repeatable.")
@click.option("--tag", "tags", type=Tag(), multiple=True, help="A label to keep; repeatable.")
@click.option(
    "--from-changelog",
    "capture",
    flag_value="changelog",
    help="Make the stores from their changelogs; no disk is needed.",
)
@click.option(
    "--roll-forward",
    "capture",
    flag_value="roll-forward",
    help="Bring a copy of the files to the end of the changelog.",
)
@click.option(
    "--from-disk",
    "capture",
    flag_value="disk",
    help="Take the files as they are, whatever they lack.",
)
@click.option("--skip-unchanged", is_flag=True, help="No new snapshot of what has not changed.")
@limit_rate_option
@parallel_option
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    stores: tuple[str, ...],
    state_dir: Path | None,
    layout: str | None,
    application: str | None,
    tasks: tuple[str, ...],
    tags: tuple[tuple[str, str], ...],
    capture: "CaptureMode | None",
    skip_unchanged: bool,
    limit_rate: int | None,
    parallel: int | None,
    dry_run: bool,
) -> None:
    """Take a snapshot of every store below the state directory, or of the named ones.

    The application may run. Only files that the repository lacks are sent. A store of which no
    right snapshot can be taken is refused with the reason, and the others go on (exit code 3). So
    it ends, too, where one is saved that could not be restored now.
    With Kafka configured, a store whose files do not say their offset, or are far behind, is
    brought to the end of its changelog in a work folder, and the snapshot is taken there. With
    --from-disk brokers that do not answer stop nothing: what is saved then cannot be proved against
    its changelog, and a restore needs --allow-unchecked-changelog (exit code 3).
    """
    config = session.config(
        {
            "state.dir": (path_override(state_dir), "--state-dir"),
            "state.layout": (layout, "--layout"),
            "state.application": (application, "--application"),
            "transfer.limit_rate": (limit_rate, "--limit-rate"),
            "transfer.parallel": (parallel, "--parallel"),
        }
    )
    with client.open_taking(config, session.hear) as repository:
        if dry_run:
            _show_plan(session, repository, stores, tasks, capture)
            return
        with session.reporting() as reporter:
            report = repository.snapshot(
                stores=stores,
                tasks=tasks,
                tags=dict(tags),
                skip_unchanged=skip_unchanged,
                capture=capture,
                listener=reporter,
            )
    _tell(session, report)
    if report.failed:
        raise _failure(report)
    if report.unrestorable:
        raise _not_yet(report)


def _tell(session: Session, report: SnapshotReport) -> None:
    for note in report.notes:
        session.note(note)
    for sentence in told(
        (each.store, remark) for each in report.outcomes for remark in each.remarks
    ):
        session.note(sentence)
    answer = session.answer if report.failed or report.unrestorable else session.done
    answer("snapshot_report", _document(report), _lines(report, session.elapsed))


def _show_plan(
    session: Session,
    repository: "SnapshotVerbs",
    stores: tuple[str, ...],
    tasks: tuple[str, ...],
    capture: "CaptureMode | None",
) -> None:
    # Imported here: a run that takes snapshots shows no plan.
    from snapstore.operations.discover import DiscoveredStore, DiscoverReport

    plan = repository.snapshot(stores=stores, tasks=tasks, capture=capture, dry_run=True)
    for note in plan.notes:
        session.note(note)
    here: dict[StoreId, DiscoveredStore] = {}
    if any(location.path.is_dir() for location in plan.locations):
        here = {store.location.store: store for store in repository.discover().stores}
    found = [
        here.get(location.store, DiscoveredStore(location=location)) for location in plan.locations
    ]
    size = sum(store.size_bytes or 0 for store in found)
    missed = DiscoverReport(stores=tuple(found), notes=(), unread=plan.unread).missed
    session.answer(
        "snapshot_plan",
        {
            "items": [
                *(discovered_document(store) for store in found),
                *(unread_document(each) for each in plan.unread),
            ]
        },
        [
            *discovered_table(found, plan.unread),
            f"would take {count(len(found), 'snapshot')} of {format_size(size)},"
            " less what the repository has",
        ],
    )
    if missed:
        raise missed_error(missed, len(found) + len(plan.unread))


def _document(report: SnapshotReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "items": [_outcome_document(outcome) for outcome in report.outcomes],
        **{name: _sum(report, name) for name in _COUNTED},
    }


def _sum(report: SnapshotReport, name: str) -> int:
    return sum(getattr(outcome, name) for outcome in report.outcomes)


def _outcome_document(outcome: StoreOutcome) -> dict[str, Any]:
    snapshot = outcome.snapshot
    return {
        "application": outcome.store.application,
        "task": outcome.store.task,
        "store": outcome.store.store,
        "status": outcome.status,
        "snapshot": None if snapshot is None else snapshot_document(snapshot, pinned=False),
        "same_content": outcome.same_content,
        "same_as": None if outcome.same_as is None else outcome.same_as.id,
        "attempts": outcome.attempts,
        "seconds": outcome.seconds,
        "remarks": outcome.remarks,
        "restorable": _restorable(outcome),
        "unrestorable": None
        if outcome.unrestorable is None
        else error_document(outcome.unrestorable),
        "error": None if outcome.error is None else error_document(outcome.error),
        **{name: getattr(outcome, name) for name in _COUNTED},
    }


def _lines(report: SnapshotReport, seconds: float) -> list[str]:
    columns = (
        Column("application", cut=True),
        Column("task"),
        Column("store", cut=True),
        Column("snapshot"),
        Column("offset", right=True),
        Column("new", right=True, spare=1),
        Column("reused", right=True, spare=2),
        Column("outcome", cut=True),
    )
    several = len({outcome.store.application for outcome in report.outcomes}) > 1
    rows = [
        (outcome.store.application if several else "", *_row(outcome))
        for outcome in report.outcomes
    ]
    stored = sum(1 for outcome in report.outcomes if outcome.status == "stored")
    return [
        *table(columns, rows),
        *complaints(
            (outcome.store, outcome.error) for outcome in report.failed if outcome.error is not None
        ),
        *complaints(
            (outcome.store, _saved_all_the_same(outcome.unrestorable))
            for outcome in report.unrestorable
            if outcome.unrestorable is not None
        ),
        f"{count(stored, 'snapshot')}: {count(_sum(report, 'new_files'), 'new file')},"
        f" {format_size(_sum(report, 'new_bytes'))};"
        f" {_sum(report, 'reused_files'):,} reused, {format_size(_sum(report, 'reused_bytes'))};"
        f" {format_duration(seconds)}",
    ]


def _row(outcome: StoreOutcome) -> tuple[str, ...]:
    task, store = outcome.store.task, outcome.store.store
    held: tuple[str, int | None]
    if outcome.snapshot is not None:
        held = (outcome.snapshot.id, outcome.snapshot.description.applied_offset)
    elif outcome.same_as is not None:
        held = (outcome.same_as.id, outcome.same_as.applied_offset)
    else:
        why = reason(outcome.error) if outcome.error is not None else "no state yet"
        return (task, store, "", "", "", "", why)
    return (
        task,
        store,
        short(held[0]),
        offset(held[1]),
        format_size(outcome.new_bytes),
        format_size(outcome.reused_bytes),
        _result(outcome),
    )


def _result(outcome: StoreOutcome) -> str:
    if outcome.unrestorable is not None:
        return "not sure to be restored"
    return "as before" if outcome.same_content else ""


def _restorable(outcome: StoreOutcome) -> bool | None:
    """Whether it is sure to be restored; None where there is nothing, or no Kafka to ask."""
    if outcome.unrestorable is not None:
        return False
    if outcome.snapshot is None:
        return None
    positions = outcome.snapshot.description.positions
    return None if any(each.fence is None for each in positions) else True


def _saved_all_the_same(error: SnapstoreError) -> SnapstoreError:
    how = (
        "restored only if that is done before compaction begins"
        if error.facts.get("by_replay")
        else "cannot be restored now"
    )
    return type(error)(f"saved, and {how}: {error.message}", hint=error.hint)


def _not_yet(report: SnapshotReport) -> SnapstoreError:
    """Return the error of a run that saved everything, and not all of it could be restored."""
    unrestorable = report.unrestorable
    return PartialFailureError(
        f"{len(unrestorable)} of {count(len(report.outcomes), 'store')} saved, and not sure to be"
        " restored",
        hint="the report says of each why, and what can be done",
        unrestorable=[str(outcome.store) for outcome in unrestorable],
    )


def _failure(report: SnapshotReport) -> SnapstoreError:
    """Return the error of a run: of the kind of its first store where nothing at all was done."""
    failed = [(each.store, each.error) for each in report.outcomes if each.error is not None]
    if len(failed) == len(report.outcomes):
        return nothing_taken(failed)
    reasons = Counter(reason(error) for _, error in failed)
    why = ", ".join(f"{times} {words}" for words, times in reasons.most_common())
    return PartialFailureError(
        f"no snapshot of {len(failed)} of {count(len(report.outcomes), 'store')}: {why}",
        hint="the report says of each what can be done; the others are saved",
        failed=[str(store) for store, _ in failed],
    )

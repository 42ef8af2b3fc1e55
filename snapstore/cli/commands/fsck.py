"""`snapstore fsck`: can this state directory be trusted?"""

from pathlib import Path
from typing import Any

import click

from snapstore import client
from snapstore.cli.commands.prepare import tell_plan, tell_report
from snapstore.cli.lazy import Verb
from snapstore.cli.mends import mended_documents, mended_lines, plan_document, plan_lines
from snapstore.cli.options import (
    application_option,
    dry_run_option,
    state_dir_argument,
    state_dir_override,
)
from snapstore.cli.session import Session
from snapstore.cli.verdicts import (
    exit_code_of,
    start_options,
    task_documents,
    total,
    verdict_lines,
)
from snapstore.config import Config
from snapstore.errors import ConfigError
from snapstore.operations.fsck_report import FsckReport


@click.command(
    "fsck",
    cls=Verb,
    short_help="What the application will do with its stores at the next start; mend it.",
    examples=(
        "snapstore fsck /var/lib/kafka-streams",
        "snapstore fsck /var/lib/kafka-streams --kafka-streams-version 4.4.0 --scan",
        "snapstore fsck /var/lib/kafka-streams --application orders --repair --dry-run",
    ),
)
@state_dir_argument
@application_option
@click.option("--task", multiple=True, metavar="TASK", help="Only this task, such as 0_3.")
@click.option("--store", multiple=True, metavar="STORE", help="Only this store.")
@start_options
@click.option("--repair", is_flag=True, help="Mend what is found; the application must be stopped.")
@click.option(
    "--from-snapshot",
    is_flag=True,
    help="With --repair: restore the newest usable snapshot of a store rather than mend it.",
)
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    place: Path | None,
    state_dir: Path | None,
    application: str | None,
    task: tuple[str, ...],
    store: tuple[str, ...],
    guarantee: str | None,
    version: str | None,
    scan: bool,
    repair: bool,
    from_snapshot: bool,
    dry_run: bool,
) -> int:
    """Say of every store whether the application starts clean, replays, rebuilds, refuses to
    start, or would silently lose rows.

    Reads only; may be run beside the application and on a read-only mount. Exit code 0: nothing
    wrong, 3: not everything can be told, 4: damage, 6: rows would be lost.

    With --repair the least offset is noted where every segment has one, what cannot be trusted is
    moved to .snapstore/quarantine in the application's directory, and lines without files are
    removed; the exit code is that of the directory afterwards.
    """
    if from_snapshot and not repair:
        raise ConfigError("--from-snapshot is a way to repair", hint="give --repair too")
    if dry_run and not repair:
        raise ConfigError("fsck changes nothing without --repair", hint="leave --dry-run out")
    config = session.config(
        {
            "state.dir": state_dir_override(place, state_dir),
            "state.application": (application, "--application"),
            "state.guarantee": (guarantee, "--guarantee"),
        }
    )
    asked = {"tasks": task, "stores": store, "version": version, "scan": scan}
    if repair and from_snapshot:
        return _restore(session, config, asked, dry_run=dry_run)
    if repair:
        return _repair(session, config, asked, dry_run=dry_run)
    report = _look(session, config, asked)
    for note in report.notes:
        session.note(note)
    session.answer("fsck", _document(report), verdict_lines(report))
    return exit_code_of(report.worst)


def _look(session: Session, config: Config, asked: dict[str, Any]) -> FsckReport:
    with session.reporting() as listener:
        return client.fsck(config=config, listener=listener, **asked)


def _document(report: FsckReport) -> dict[str, object]:
    return {
        "state_dir": report.state_dir,
        "verdict": report.worst,
        "scanned_pairs": report.scanned_pairs,
        "checked_changelogs": None if report.bounds is None else len(report.bounds),
        "tasks": task_documents(report.tasks),
    }


def _repair(session: Session, config: Config, asked: dict[str, Any], *, dry_run: bool) -> int:
    with session.reporting() as listener:
        if dry_run:
            plan = client.mend(config=config, listener=listener, dry_run=True, **asked)
        else:
            done = client.mend(config=config, listener=listener, **asked)
    report = _look(session, config, _without_gone(asked, dry_run=dry_run))
    body: dict[str, object]
    if dry_run:
        body = {"dry_run": True, **plan_document(plan)}
        lines = plan_lines(plan)
    else:
        for sentence in done.recovered:
            session.note(sentence)
        body = {"dry_run": False, "tasks": mended_documents(done.tasks), "left": []}
        lines = [*mended_lines(done.tasks), f"now: {total(report)}"]
    session.done("fsck_repair", {**body, "after": _document(report)}, lines)
    return exit_code_of(report.worst)


def _without_gone(asked: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
    """After a mend a named store may be gone: look at the whole tasks."""
    return asked if dry_run else {**asked, "stores": (), "tasks": ()}


def _restore(session: Session, config: Config, asked: dict[str, Any], *, dry_run: bool) -> int:
    with session.reporting() as listener:
        if dry_run:
            plan = client.prepare(
                config=config,
                listener=listener,
                bring=False,
                prefer_snapshots=True,
                dry_run=True,
                **asked,
            )
        else:
            report = client.prepare(
                config=config, listener=listener, bring=False, prefer_snapshots=True, **asked
            )
    return tell_plan(session, plan) if dry_run else tell_report(session, report)

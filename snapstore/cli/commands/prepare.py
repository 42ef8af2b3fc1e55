"""`snapstore prepare`: make a state directory ready for the next start."""

import re
from pathlib import Path
from typing import Any

import click

from snapstore import client
from snapstore.cli.exit_codes import DONE
from snapstore.cli.lazy import Verb
from snapstore.cli.mends import (
    mended_documents,
    plan_document,
    prepare_plan_lines,
    prepared_lines,
)
from snapstore.cli.options import (
    application_option,
    dry_run_option,
    state_dir_argument,
    state_dir_override,
)
from snapstore.cli.session import Session
from snapstore.cli.verdicts import exit_code_of, start_options
from snapstore.operations.prepare import PreparePlan, PrepareReport
from snapstore.operations.prepare_plan import Share


class ShareOf(click.ParamType[Share]):
    """``i/n``."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Share:
        if isinstance(value, Share):
            return value
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"not a share such as 2/3: {value!r}", param, ctx)
        return Share(int(match[1]), int(match[2]))


@click.command(
    "prepare",
    cls=Verb,
    short_help="Before a start: mend, else restore, else leave it to the application.",
    examples=(
        "snapstore prepare /var/lib/kafka-streams --application orders",
        "snapstore prepare /var/lib/kafka-streams --application orders --share 2/3",
        "snapstore prepare /var/lib/kafka-streams --application orders --dry-run",
    ),
)
@state_dir_argument
@application_option
@click.option("--task", multiple=True, metavar="TASK", help="Only this task, such as 0_3.")
@click.option(
    "--instance",
    metavar="NAME",
    help="An empty disk gets the tasks that were ever captured here [default: the host name].",
)
@click.option(
    "--share", type=ShareOf(), metavar="i/n", help="An empty disk gets this part of all tasks."
)
@start_options
@click.option(
    "--allow-unchecked-changelog",
    is_flag=True,
    help="Restore although nothing proves the snapshot against its changelog.",
)
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    place: Path | None,
    state_dir: Path | None,
    application: str | None,
    task: tuple[str, ...],
    instance: str | None,
    share: Share | None,
    guarantee: str | None,
    version: str | None,
    scan: bool,
    allow_unchecked_changelog: bool,
    dry_run: bool,
) -> int:
    """Make a state directory safe to start with, and quick where snapshots allow it.

    Looks as fsck does, mends what would lose rows, restores the newest usable snapshot of what
    would be rebuilt, and leaves the rest to the application. To be run before every start: a
    directory that needs nothing is read and not touched, and a repository that does not answer
    matters only where something is to be restored. On an empty disk the tasks that this instance
    ever captured are restored, a standby's too; where there are none the application starts from
    nothing, which is said. --allow-unchecked-changelog also goes on without brokers that do not
    answer.
    """
    config = session.config(
        {
            "state.dir": state_dir_override(place, state_dir),
            "state.application": (application, "--application"),
            "state.guarantee": (guarantee, "--guarantee"),
        }
    )
    with session.reporting() as listener:
        asked: dict[str, Any] = {
            "config": config,
            "tasks": task,
            "instance": instance,
            "share": share,
            "version": version,
            "scan": scan,
            "allow_unchecked_changelog": allow_unchecked_changelog,
            "listener": listener,
        }
        if dry_run:
            plan = client.prepare(dry_run=True, **asked)
        else:
            report = client.prepare(**asked)
    return tell_plan(session, plan) if dry_run else tell_report(session, report)


def tell_plan(session: Session, plan: PreparePlan) -> int:
    """Print what would be done."""
    session.done(
        "prepare",
        {
            "dry_run": True,
            "decisions": [
                {
                    "application": each.store.application,
                    "task": each.store.task,
                    "store": each.store.store,
                    "decision": each.choice,
                    "reason": each.reason,
                }
                for each in plan.decisions
            ],
            "bring": list(plan.bring),
            "empty_start": plan.empty_start,
            "mend": plan_document(plan.mend),
        },
        prepare_plan_lines(plan),
    )
    return DONE


def tell_report(session: Session, report: PrepareReport) -> int:
    """Print what was done and return the exit code of the directory as it is now."""
    for note in report.notes:
        session.note(note)
    session.done(
        "prepare",
        {
            "dry_run": False,
            "verdict": report.worst,
            "empty_start": report.empty_start,
            "stores": [
                {
                    "application": each.store.application,
                    "task": each.store.task,
                    "store": each.store.store,
                    "outcome": each.outcome,
                    "reason": each.reason,
                }
                for each in report.stores
            ],
            "mended": mended_documents(report.mended),
            "restored": [
                {
                    "store": store.store,
                    "snapshot": store.snapshot_id,
                    "records_to_replay": store.records_to_replay,
                }
                for each in report.restored
                for store in each.stores
            ],
        },
        prepared_lines(report.stores),
    )
    return exit_code_of(report.worst_seen)

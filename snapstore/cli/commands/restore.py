"""`snapstore restore`: bring stores back."""

from datetime import datetime
from pathlib import Path

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    application_option,
    dry_run_option,
    kafka_streams_version_option,
    limit_rate_option,
    parallel_option,
    replay_goal,
    store_option,
    task_option,
    to_offset_option,
    to_time_option,
)
from snapstore.cli.restores import (
    plan_document,
    plan_lines,
    report_document,
    report_from_facts,
    report_lines,
)
from snapstore.cli.session import Session, path_override
from snapstore.client import Snapstore
from snapstore.errors import PartialFailureError


@click.command(
    "restore",
    cls=Verb,
    short_help="Bring stores back below a state directory.",
    examples=(
        "snapstore restore --application orders --target /var/lib/kafka-streams",
        "snapstore restore orders/counts:3 --target /data/state --dry-run",
        "snapstore restore --application orders --task 0_3 --if-exists",
        "snapstore restore --application orders --target /data/state --replay",
    ),
)
@click.argument("refs", metavar="[REF...]", nargs=-1)
@application_option
@task_option
@store_option
@click.option(
    "--target",
    "--state-dir",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The application's state.dir.",
)
@click.option("--replace", is_flag=True, help="Replace stores that are there.")
@click.option("--keep-replaced", is_flag=True, help="Keep what was replaced beside.")
@click.option(
    "--allow-unchecked-changelog",
    is_flag=True,
    help="Restore although nothing proves the snapshot against its changelog.",
)
@click.option(
    "--allow-missed-tombstones",
    is_flag=True,
    help="Restore although keys deleted after the snapshot may come back.",
)
@click.option("--replay", is_flag=True, help="Also apply the records after the snapshot.")
@to_offset_option
@to_time_option
@click.option(
    "--skip-unrestorable",
    is_flag=True,
    help="Leave out the stores of which no snapshot can be used.",
)
@kafka_streams_version_option
@click.option("--if-exists", is_flag=True, help="No snapshot is no error: do nothing.")
@limit_rate_option
@parallel_option
@dry_run_option
@click.pass_obj
def command(
    session: Session,
    refs: tuple[str, ...],
    application: str | None,
    task: str | None,
    store: str | None,
    target: Path | None,
    replace: bool,
    keep_replaced: bool,
    allow_unchecked_changelog: bool,
    allow_missed_tombstones: bool,
    replay: bool,
    to_offset: int | None,
    to_time: datetime | None,
    skip_unrestorable: bool,
    version: str | None,
    if_exists: bool,
    limit_rate: int | None,
    parallel: int | None,
    dry_run: bool,
) -> None:
    """Bring stores back: the snapshots REF, or of --application the newest usable of each store.

    The application must not run. A task directory is built beside the one in use and put into
    place as a whole. A REF is the beginning of an id, application/task/store,
    application/store:partition or topic:partition, with @OFFSET or @TIME the newest not beyond.
    With --replay the records after the snapshot are applied too, before anything gets into place.
    If one store has no snapshot that can be used, nothing is restored, and the error names those
    that could be; --skip-unrestorable restores them, and the application rebuilds the others.
    """
    config = session.config(
        {
            "state.dir": (path_override(target), "--target"),
            "transfer.limit_rate": (limit_rate, "--limit-rate"),
            "transfer.parallel": (parallel, "--parallel"),
        }
    )

    goal = replay_goal(to_offset, to_time) if replay else None
    if not replay and (to_offset is not None or to_time is not None):
        raise click.UsageError("--to-offset and --to-time are for --replay")

    def restore(repository: Snapstore) -> None:
        if dry_run:
            plan = repository.restore(
                refs,
                application=application,
                task=task,
                store=store,
                replace=replace,
                keep_replaced=keep_replaced,
                allow_unchecked_changelog=allow_unchecked_changelog,
                allow_missed_tombstones=allow_missed_tombstones,
                missing_ok=if_exists,
                skip_unrestorable=skip_unrestorable,
                version=version,
                replay=goal,
                dry_run=True,
            )
            for note in plan.notes:
                session.note(note)
            session.answer("restore_plan", plan_document(plan), plan_lines(plan))
            return
        with session.reporting() as reporter:
            report = repository.restore(
                refs,
                application=application,
                task=task,
                store=store,
                replace=replace,
                keep_replaced=keep_replaced,
                allow_unchecked_changelog=allow_unchecked_changelog,
                allow_missed_tombstones=allow_missed_tombstones,
                missing_ok=if_exists,
                skip_unrestorable=skip_unrestorable,
                version=version,
                replay=goal,
                listener=reporter,
            )
        session.done(
            "restore_report", report_document(report), report_lines(report, session.elapsed)
        )

    with client.open(config=config, listener=session.hear) as repository:
        try:
            restore(repository)
        except PartialFailureError as exc:
            report = report_from_facts(exc.facts)
            session.answer(
                "restore_report", report_document(report), report_lines(report, session.elapsed)
            )
            exc.facts.pop("report")
            raise

"""`snapstore status`: how fresh the snapshots are, and whether one could be restored now."""

from datetime import timedelta
from pathlib import Path

import click

from snapstore import client
from snapstore.cli.exit_codes import DONE, PARTIAL, exit_code_of_unknown
from snapstore.cli.freshness import report_document, report_lines
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    Duration,
    Size,
    application_option,
    state_dir_option,
    store_option,
    task_option,
)
from snapstore.cli.session import Session, path_override
from snapstore.model.freshness import FreshnessReport


@click.command(
    "status",
    cls=Verb,
    short_help="How fresh the snapshots are, and whether one could be restored now.",
    examples=(
        "snapstore status",
        "snapstore status --application orders --max-age 1h --max-lag 1000000",
        "snapstore status --safe-trim --json",
    ),
)
@application_option
@task_option
@store_option
@state_dir_option
@click.option("--max-age", type=Duration(), metavar="AGE", help="Exit 3 beyond it, as 2h.")
@click.option(
    "--max-lag",
    type=click.IntRange(min=0),
    metavar="RECORDS",
    help="Exit 3 when more would have to be replayed.",
)
@click.option(
    "--download-rate",
    type=Size(),
    metavar="SIZE",
    help="Bytes per second of a restore [default: of the last drill].",
)
@click.option(
    "--replay-rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="RECORDS",
    help="Records per second of a replay [default: of the last drill].",
)
@click.option(
    "--safe-trim",
    is_flag=True,
    help="Up to where the changelogs are in every usable snapshot that is kept.",
)
@click.pass_obj
def command(
    session: Session,
    application: str | None,
    task: str | None,
    store: str | None,
    state_dir: Path | None,
    max_age: timedelta | None,
    max_lag: int | None,
    download_rate: int | None,
    replay_rate: float | None,
    safe_trim: bool,
) -> int:
    """Say of every store how old its newest usable snapshot is, how many records behind, how long
    a restore would take and until when it stays usable.

    Only the presence and size of what snapshots need is checked (verify reads them). Exit code 3: a
    threshold is crossed or a store has no usable snapshot; 12: a changelog did not answer (2: the
    brokers deny it); 10: no snapshot at all.
    """
    with client.open(config=session.config(), listener=session.hear) as repository:
        report = repository.status(
            path_override(state_dir),
            application=application,
            task=task,
            store=store,
            max_age=max_age,
            max_lag_records=max_lag,
            download_bytes_per_second=download_rate,
            replay_records_per_second=replay_rate,
            safe_trim=safe_trim,
        )
    for note in report.notes:
        session.note(note)
    code = exit_code_of(report)
    session.answer("status", report_document(report, code), report_lines(report))
    return code


def exit_code_of(report: FreshnessReport) -> int:
    """Return 3 where a store must be looked at, 0 where none has to be.

    12 where a changelog did not answer, 2 where that is final.
    """
    if report.over:
        return PARTIAL
    unknown = report.unknown
    return exit_code_of_unknown(each.code for each in unknown) if unknown else DONE

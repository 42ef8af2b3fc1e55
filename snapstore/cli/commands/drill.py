"""`snapstore drill`: the whole restore, proved."""

from pathlib import Path

import click

from snapstore import client
from snapstore.cli.drills import report_document, report_lines
from snapstore.cli.exit_codes import DAMAGE, DONE, PARTIAL, REFUSED, exit_code_of_unknown
from snapstore.cli.junit import write_junit
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    application_option,
    limit_rate_option,
    store_option,
    task_option,
)
from snapstore.cli.session import Session
from snapstore.operations.drill_report import DrillReport


@click.command(
    "drill",
    cls=Verb,
    short_help="Restore into a scratch folder and compare with a rebuild.",
    examples=(
        "snapstore drill --application orders",
        "snapstore drill --sample 3 --seed 20260504 --junit drill.xml",
        "snapstore drill orders/counts:3 --scratch /data/scratch --json",
    ),
)
@click.argument("refs", metavar="[REF...]", nargs=-1)
@application_option
@task_option
@store_option
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only N stores of single partitions, drawn by chance.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="Another seed, another sample.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where two copies of one store find room [default: the system's].",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result as JUnit XML too.",
)
@limit_rate_option
@click.pass_obj
def command(
    session: Session,
    refs: tuple[str, ...],
    application: str | None,
    task: str | None,
    store: str | None,
    sample: int | None,
    seed: int,
    scratch: Path | None,
    junit: Path | None,
    limit_rate: int | None,
) -> int:
    """Prove that snapshots bring their stores back.

    The newest usable snapshot of each store is restored into a scratch folder and replayed to the
    end of its changelog. Another copy is built from the changelog alone, and both must hold the
    same pairs. What cannot be compared is said. Exit code 4: a difference or damage; 3: some stores
    could not be drilled; 5, 12: none could.
    """
    config = session.config({"transfer.limit_rate": (limit_rate, "--limit-rate")})
    with (
        client.open(config=config, listener=session.hear) as repository,
        session.reporting() as reporter,
    ):
        report = repository.drill(
            refs,
            application=application,
            task=task,
            store=store,
            sample=sample,
            seed=seed,
            scratch=scratch,
            listener=reporter,
        )
    if junit is not None:
        write_junit(junit, report)
    code = exit_code_of(report)
    session.answer("drill", report_document(report, code), report_lines(report, session.elapsed))
    return code


def exit_code_of(report: DrillReport) -> int:
    """Return the code of a drill; where nothing at all was compared, nothing is proved."""
    if report.of("differs", "damaged"):
        return DAMAGE
    compared = report.of("equal", "partly")
    if not compared:
        unavailable = report.of("unavailable")
        return exit_code_of_unknown(each.code for each in unavailable) if unavailable else REFUSED
    return PARTIAL if report.of("refused", "unavailable") else DONE

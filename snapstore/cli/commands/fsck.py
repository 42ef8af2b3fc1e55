"""`snapstore fsck`: can this state directory be trusted?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from snapstore import client
from snapstore.cli.exit_codes import DAMAGE, DONE, LOSSY_START, PARTIAL
from snapstore.cli.lazy import Verb
from snapstore.cli.options import application_option
from snapstore.cli.session import Session, path_override
from snapstore.cli.verdicts import task_documents, verdict_lines
from snapstore.model.verdict import Kind

EXIT_CODE_OF: Final[Mapping[Kind, int]] = {
    "clean": DONE,
    "replays": DONE,
    "wipes": DONE,
    "unknown": PARTIAL,
    "refuses": DAMAGE,
    "damaged": DAMAGE,
    "loses_rows": LOSSY_START,
}


@click.command(
    "fsck",
    cls=Verb,
    short_help="What the application will do with its stores at the next start.",
    examples=(
        "snapstore fsck /var/lib/kafka-streams",
        "snapstore fsck /var/lib/kafka-streams --application orders --scan",
        "snapstore fsck /var/lib/kafka-streams --kafka-streams-version 4.4.0",
    ),
)
@click.argument("state_dir", metavar="[STATE_DIR]", required=False, type=click.Path(path_type=Path))
@application_option
@click.option("--task", multiple=True, metavar="TASK", help="Only this task, such as 0_3.")
@click.option("--store", multiple=True, metavar="STORE", help="Only this store.")
@click.option("--scan", is_flag=True, help="Read every block of every table.")
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once_v2"]),
    help="The application's processing.guarantee, where the files do not tell.",
)
@click.option(
    "--kafka-streams-version",
    "version",
    metavar="VERSION",
    help="The version that will start, as 4.4.0 [default: the worst that could].",
)
@click.pass_obj
def command(
    session: Session,
    state_dir: Path | None,
    application: str | None,
    task: tuple[str, ...],
    store: tuple[str, ...],
    scan: bool,
    guarantee: str | None,
    version: str | None,
) -> int:
    """Say of every store whether the application starts clean, replays, rebuilds, refuses to
    start, or would silently lose rows.

    Reads only; may be run beside the application and on a read-only mount. Exit code 0: nothing
    wrong, 3: not everything can be told, 4: damage, 6: rows would be lost.
    """
    config = session.config(
        {
            "state.dir": (path_override(state_dir), "STATE_DIR"),
            "state.application": (application, "--application"),
            "state.guarantee": (guarantee, "--guarantee"),
        }
    )
    with session.reporting() as listener:
        report = client.fsck(
            config=config, tasks=task, stores=store, version=version, scan=scan, listener=listener
        )
    for note in report.notes:
        session.note(note)
    session.answer(
        "fsck",
        {
            "state_dir": report.state_dir,
            "verdict": report.worst,
            "scanned_pairs": report.scanned_pairs,
            "checked_changelogs": None if report.bounds is None else len(report.bounds),
            "tasks": task_documents(report.tasks),
        },
        verdict_lines(report),
    )
    return EXIT_CODE_OF[report.worst]

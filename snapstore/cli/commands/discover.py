"""`snapstore discover`: which stores there are, and what a snapshot of them would hold."""

from pathlib import Path

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import (
    application_option,
    layout_option,
    state_dir_argument,
    state_dir_override,
)
from snapstore.cli.session import Session
from snapstore.cli.stores import (
    discovered_document,
    discovered_table,
    missed_error,
    unread_document,
)
from snapstore.cli.text import count
from snapstore.model.units import format_size


@click.command(
    "discover",
    cls=Verb,
    short_help="Stores found, their offsets and sizes; reads only.",
    examples=("snapstore discover /var/lib/kafka-streams",),
)
@state_dir_argument
@layout_option
@application_option
@click.pass_obj
def command(
    session: Session,
    place: Path | None,
    state_dir: Path | None,
    layout: str | None,
    application: str | None,
) -> None:
    """Find the stores below a state directory and say what a snapshot of each would hold.

    Reads only, needs no repository, and may be run beside the application. A store that cannot be
    read is named with the reason, and the others are listed (exit code 3).
    """
    config = session.config(
        {
            "state.dir": state_dir_override(place, state_dir),
            "state.layout": (layout, "--layout"),
            "state.application": (application, "--application"),
        }
    )
    report = client.discover(config=config)
    for note in report.notes:
        session.note(note)
    size = sum(store.size_bytes or 0 for store in report.stores)
    refused = sum(1 for store in report.stores if store.problem is not None) + len(report.unread)
    found = len(report.stores) + len(report.unread)
    last = f"{count(found, 'store')}, {format_size(size)}"
    if refused:
        last += f"; no snapshot could be taken of {refused} of them now"
    session.answer(
        "store_list",
        {
            "items": [
                *(discovered_document(store) for store in report.stores),
                *(unread_document(each) for each in report.unread),
            ]
        },
        [*discovered_table(report.stores, report.unread), last],
    )
    if report.missed:
        raise missed_error(report.missed, found)

"""`snapstore plugins`: what is built in, and what other distributions add."""

import click

from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.cli.text import Column, table
from snapstore.registry import Registry


@click.command(
    "plugins",
    cls=Verb,
    short_help="Storages, backends and layouts there are.",
    examples=("snapstore plugins",),
)
@click.pass_obj
def command(session: Session) -> None:
    """List the storages, backends and layouts that can be named; the broken ones say why."""
    found = Registry().plugins()
    session.answer(
        "plugin_list",
        {"items": found},
        table(
            (
                Column("kind"),
                Column("name"),
                Column("from"),
                Column("class", cut=True, spare=1),
                Column("error", below=True),
            ),
            [(one.kind, one.name, one.origin, one.target, one.error or "") for one in found],
        ),
    )

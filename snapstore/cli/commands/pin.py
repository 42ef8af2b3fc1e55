"""`snapstore pin`: keep snapshots regardless of retention."""

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document
from snapstore.cli.text import short


@click.command(
    "pin",
    cls=Verb,
    short_help="Keep snapshots regardless of retention.",
    examples=("snapstore pin 3f9c2a7b41d0 --reason 'before the migration'",),
)
@click.argument("refs", metavar="REF...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Why, for whoever wonders later.")
@click.pass_obj
def command(session: Session, refs: tuple[str, ...], reason: str) -> None:
    """Keep snapshots: retention does not remove them, and delete refuses to."""
    with client.open(config=session.config(), listener=session.hear) as repository:
        found = repository.pin(refs, reason=reason)
    session.done(
        "pinned",
        {"items": [listed_document(item, pinned=True) for item in found]},
        [f"pinned {short(item.id)} of {item.store}" for item in found],
    )

"""`snapstore unpin`: leave snapshots to retention again."""

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document
from snapstore.cli.text import short


@click.command(
    "unpin",
    cls=Verb,
    short_help="Leave snapshots to retention again.",
    examples=("snapstore unpin 3f9c2a7b41d0",),
)
@click.argument("refs", metavar="REF...", nargs=-1, required=True)
@click.pass_obj
def command(session: Session, refs: tuple[str, ...]) -> None:
    """Undo a pin. A snapshot that is not pinned is no error."""
    with client.open(config=session.config(), listener=session.hear) as repository:
        found = repository.unpin(refs)
    session.done(
        "unpinned",
        {"items": [listed_document(item, pinned=False) for item in found]},
        [f"unpinned {short(item.id)} of {item.store}" for item in found],
    )

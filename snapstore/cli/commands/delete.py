"""`snapstore delete`: take snapshots out of the catalog."""

import sys

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.narrow import fitted, width_of
from snapstore.cli.options import dry_run_option
from snapstore.cli.session import Session
from snapstore.cli.snapshots import listed_document, listed_table
from snapstore.cli.text import count
from snapstore.errors import ConfigError


@click.command(
    "delete",
    cls=Verb,
    short_help="Take snapshots out of the catalog.",
    examples=("snapstore delete 3f9c2a7b41d0", "snapstore delete 3f9c2a7b41d0 8e1f --yes"),
)
@click.argument("refs", metavar="REF...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@dry_run_option
@click.pass_obj
def command(session: Session, refs: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Take snapshots out of the catalog. Their bytes go with a later sweep, unless others share
    them. A pinned snapshot is refused.
    """
    with client.open(config=session.config(), listener=session.hear) as repository:
        found = repository.delete(refs, dry_run=True)
        if not (yes or dry_run):
            if session.json or not sys.stdin.isatty():
                raise ConfigError(
                    "delete asks before it acts, and there is nobody to ask",
                    hint="give --yes, or look first with --dry-run",
                )
            for line in fitted(listed_table(found, frozenset()), width_of(sys.stderr, session.env)):
                click.echo(line, err=True)
            click.confirm(f"delete {count(len(found), 'snapshot')}?", abort=True, err=True)
        if not dry_run:
            found = repository.delete([item.id for item in found])
    would = "would be " if dry_run else ""
    session.done(
        "deleted",
        {
            "dry_run": dry_run,
            "items": [listed_document(item, pinned=False) for item in found],
        },
        [*listed_table(found, frozenset()), f"{count(len(found), 'snapshot')} {would}deleted"],
    )

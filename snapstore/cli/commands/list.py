"""`snapstore list`: which snapshots there are."""

from datetime import timedelta

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.options import Duration, Tag, application_option, store_option, task_option
from snapstore.cli.session import Session
from snapstore.cli.snapshots import (
    listed_document,
    listed_table,
    snapshot_document,
    snapshot_table,
    total_line,
)
from snapstore.model.units import few


@click.command(
    "list",
    cls=Verb,
    short_help="Snapshots, the newest of each store first.",
    examples=(
        "snapstore list",
        "snapstore list --application orders --task 0_3 --latest 1",
        "snapstore list --since 7d --long",
    ),
)
@application_option
@task_option
@store_option
@click.option("--latest", type=click.IntRange(min=1), metavar="N", help="Only N of each store.")
@click.option("--since", type=Duration(), metavar="AGE", help="Only younger ones, as 7d.")
@click.option("--tag", type=Tag(), multiple=True, help="Only with this tag; reads every entry.")
@click.option("--long", is_flag=True, help="Sizes, source and tags too; reads every entry.")
@click.pass_obj
def command(
    session: Session,
    application: str | None,
    task: str | None,
    store: str | None,
    latest: int | None,
    since: timedelta | None,
    tag: tuple[tuple[str, str], ...],
    long: bool,
) -> None:
    """List the snapshots of the repository, the newest of each store first."""
    with client.open_catalog(session.config(), session.hear) as repository:
        listing = repository.list(
            application=application,
            task=task,
            store=store,
            captured_within=since,
            latest=None if tag else latest,
        )
        pinned = repository.pinned()
        listed = listing.snapshots
        if listing.foreign:
            session.note(f"not a catalog entry, passed over: {few(listing.foreign)}")
        if not (tag or long):
            items = [listed_document(item, pinned=item.id in pinned) for item in listed]
            lines = listed_table(listed, pinned)
        else:
            wanted = dict(tag)
            read = [
                (item, snapshot)
                for item in listed
                for snapshot in [repository.load(item)]
                if wanted.items() <= snapshot.description.tags.items()
            ]
            if latest is not None:
                kept = client.newest_of_each([item for item, _ in read], latest)
                read = [(item, snapshot) for item, snapshot in read if item in kept]
            listed = tuple(item for item, _ in read)
            snapshots = [snapshot for _, snapshot in read]
            items = [snapshot_document(each, pinned=each.id in pinned) for each in snapshots]
            lines = snapshot_table(snapshots, pinned)
    session.answer("snapshot_list", {"items": items}, [*lines, total_line(listed)])

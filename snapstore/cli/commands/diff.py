"""`snapstore diff`: what changed between two snapshots."""

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.cli.text import Column, count, table
from snapstore.model.units import format_size
from snapstore.operations.diff import SnapshotDiff


@click.command(
    "diff",
    cls=Verb,
    short_help="Files and bytes shared, added, gone.",
    examples=("snapstore diff 3f9c2a7b41d0 8e1f07c2ab34",),
)
@click.argument("old")
@click.argument("new")
@click.pass_obj
def command(session: Session, old: str, new: str) -> None:
    """Compare the files of two snapshots by their content."""
    with client.open(config=session.config(), listener=session.hear) as repository:
        found = repository.diff(old, new)
    session.answer(
        "snapshot_diff",
        {
            "shared": found.shared,
            "added": found.added,
            "gone": found.gone,
            "changed": found.changed,
            "shared_bytes": found.shared_bytes,
            "added_bytes": found.added_bytes,
            "gone_bytes": found.gone_bytes,
        },
        _lines(found),
    )


def _lines(found: SnapshotDiff) -> list[str]:
    rows = [("+", file.name, format_size(file.size_bytes)) for file in found.added]
    rows += [("-", file.name, format_size(file.size_bytes)) for file in found.gone]
    rows += [
        ("~", file.name, f"{format_size(file.old_bytes)} -> {format_size(file.new_bytes)}")
        for file in found.changed
    ]
    rows.sort(key=lambda row: row[1])
    return [
        *table((Column(" "), Column("file", cut=True), Column("size", right=True)), rows),
        f"{count(len(found.shared), 'file')} shared, {format_size(found.shared_bytes)};"
        f" {len(found.added)} added and {len(found.changed)} changed,"
        f" {format_size(found.added_bytes)} new; {len(found.gone)} gone,"
        f" {format_size(found.gone_bytes)} no longer needed",
    ]

"""`snapstore show`: one snapshot."""

import click

from snapstore import client
from snapstore.cli.lazy import Verb
from snapstore.cli.session import Session
from snapstore.cli.snapshots import snapshot_document, source
from snapstore.cli.text import Column, count, moment, pairs, short, table
from snapstore.client import ShownSnapshot
from snapstore.model.snapshot import Description, Position
from snapstore.model.units import format_size


@click.command(
    "show",
    cls=Verb,
    short_help="One snapshot: positions, fence, sizes, files.",
    examples=(
        "snapstore show 3f9c2a7b41d0",
        "snapstore show orders/counts:3 --files",
        "snapstore show orders-counts-changelog:3@120000",
    ),
)
@click.argument("ref")
@click.option("--files", is_flag=True, help="Every file with its size and hash.")
@click.pass_obj
def command(session: Session, ref: str, files: bool) -> None:
    """Show one snapshot.

    REF is the beginning of an id, application/task/store, application/store:partition or
    topic:partition; with @OFFSET or @TIME the newest that is not beyond.
    """
    with client.open(config=session.config(), listener=session.hear) as repository:
        shown = repository.show(ref)
    body = snapshot_document(shown.snapshot, pinned=shown.pinned)
    lines = _lines(shown)
    if files:
        body["file_list"] = [
            {
                "name": file.name,
                "size_bytes": file.size,
                "mode": f"{file.mode:04o}",
                "sha256": file.sha256,
                "inline": file.inline is not None,
            }
            for file in shown.manifest.files
        ]
        lines += ["", *_file_table(shown)]
    session.answer("snapshot", body, lines)


def _lines(shown: ShownSnapshot) -> list[str]:
    snapshot, description = shown.snapshot, shown.snapshot.description
    lines = pairs(
        [
            ("id", snapshot.id),
            ("application", description.store.application),
            ("task", description.store.task),
            ("store", description.store.store),
            ("type", f"{description.store_type} ({description.backend}, {description.generation})"),
            ("captured", moment(description.captured_at)),
            ("source", f"{source(description)}, on {description.instance}"),
            ("guarantee", _guarantee(description)),
            ("RocksDB", _rocksdb(description)),
            ("writer", description.writer),
            ("tags", " ".join(f"{k}={v}" for k, v in sorted(description.tags.items()))),
            ("pinned", "yes" if shown.pinned else "no"),
            ("databases", count(len(description.databases), "RocksDB database")),
            ("size", f"{format_size(snapshot.size_bytes)} in {count(snapshot.files, 'file')}"),
            (
                "new then",
                f"{format_size(snapshot.new_bytes)} in {count(snapshot.new_files, 'file')}",
            ),
        ]
    )
    if not description.positions:
        return [*lines, "no changelog: there is nothing to replay after a restore"]
    for position in description.positions:
        lines += ["", *_position(position)]
    return lines


def _guarantee(description: Description) -> str:
    """Say under which guarantee open files were written; of others it does not matter."""
    if description.status != "open":
        return "does not matter" if description.status else ""
    if description.guarantee is None:
        return "not known: no replay goes on from it unless state.guarantee says at_least_once"
    return f"{description.guarantee} ({description.guarantee_found_by})"


def _rocksdb(description: Description) -> str:
    if description.rocksdb_version is None:
        return ""
    return f"{description.rocksdb_version}, tables of format {description.table_format}"


def _position(position: Position) -> list[str]:
    at, fence = position.position, position.fence
    rows = [
        ("changelog", str(at.changelog)),
        ("applied offset", f"{at.applied_offset} (reading goes on at {at.resume_offset})"),
    ]
    if fence is None:
        return [*pairs(rows), "no fence: Kafka was not configured, so nothing proves the topic"]
    rows += [
        ("log end then", str(fence.end_offset)),
        ("topic id", fence.topic_id),
        ("cluster id", fence.cluster_id),
        ("clean-up policy", fence.cleanup_policy),
        ("nothing behind at", moment(fence.behind_since) if fence.behind_since else "not known"),
    ]
    return pairs(rows)


def _file_table(shown: ShownSnapshot) -> list[str]:
    columns = (
        Column("file", cut=True),
        Column("size", right=True),
        Column("sha-256", spare=2),
        Column("kept", spare=1),
    )
    return table(
        columns,
        [
            (
                file.name,
                format_size(file.size),
                short(file.sha256),
                "in the manifest" if file.inline is not None else "",
            )
            for file in shown.manifest.files
        ],
    )

"""How snapshots are shown: the JSON of one, and the table of many."""

from collections.abc import Iterable, Sequence
from typing import Any

from snapstore.cli.text import Column, count, moment, offset, short, table
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import Description, Position, Snapshot
from snapstore.model.units import format_size


def listed_document(listed: ListedSnapshot, *, pinned: bool) -> dict[str, Any]:
    """Return what the catalog's listing tells of a snapshot."""
    return {
        "id": listed.id,
        "application": listed.store.application,
        "task": listed.store.task,
        "store": listed.store.store,
        "applied_offset": listed.applied_offset,
        "changelog_partitions": listed.changelogs,
        "captured_at": listed.captured_at,
        "pinned": pinned,
    }


def snapshot_document(snapshot: Snapshot, *, pinned: bool) -> dict[str, Any]:
    """Return everything the catalog entry of a snapshot tells."""
    description = snapshot.description
    return {
        "id": snapshot.id,
        "application": description.store.application,
        "task": description.store.task,
        "store": description.store.store,
        "applied_offset": description.applied_offset,
        "changelog_partitions": len(description.positions),
        "captured_at": description.captured_at,
        "pinned": pinned,
        "layout": description.layout,
        "backend": description.backend,
        "store_type": description.store_type,
        "generation": description.generation,
        "source": description.source,
        "status": description.status,
        "killed": description.killed,
        "guarantee": description.guarantee,
        "guarantee_found_by": description.guarantee_found_by,
        "complete": description.complete,
        "rocksdb_version": description.rocksdb_version,
        "table_format": description.table_format,
        "instance": description.instance,
        "run": description.run,
        "writer": description.writer,
        "tags": description.tags,
        "databases": list(description.databases),
        "positions": [_position_document(position) for position in description.positions],
        "files": snapshot.files,
        "size_bytes": snapshot.size_bytes,
        "new_files": snapshot.new_files,
        "new_bytes": snapshot.new_bytes,
    }


def listed_table(listed: Iterable[ListedSnapshot], pinned: frozenset[str]) -> list[str]:
    """Return the table of listed snapshots."""
    columns = (
        Column("id"),
        Column("application", cut=True),
        Column("task"),
        Column("store", cut=True),
        Column("offset", right=True),
        Column("captured"),
        Column("pinned"),
    )
    return table(
        columns,
        [
            (
                short(item.id),
                item.store.application,
                item.store.task,
                item.store.store,
                offset(item.applied_offset),
                moment(item.captured_at),
                "pinned" if item.id in pinned else "",
            )
            for item in listed
        ],
    )


def snapshot_table(snapshots: Sequence[Snapshot], pinned: frozenset[str]) -> list[str]:
    """Return the table of snapshots whose entries were read."""
    columns = (
        Column("id"),
        Column("application", cut=True),
        Column("task"),
        Column("store", cut=True),
        Column("offset", right=True),
        Column("captured"),
        Column("files", right=True, spare=5),
        Column("size", right=True, spare=1),
        Column("new", right=True, spare=3),
        Column("source", spare=4),
        Column("tags", cut=True, spare=2),
        Column("pinned"),
    )
    return table(
        columns,
        [
            (
                short(item.id),
                item.description.store.application,
                item.description.store.task,
                item.description.store.store,
                offset(item.description.applied_offset),
                moment(item.description.captured_at),
                f"{item.files:,}",
                format_size(item.size_bytes),
                format_size(item.new_bytes),
                source(item.description),
                " ".join(f"{key}={value}" for key, value in sorted(item.description.tags.items())),
                "pinned" if item.id in pinned else "",
            )
            for item in snapshots
        ],
    )


def source(description: Description) -> str:
    """Return what the files were taken from, in a word: an application that was killed has closed
    nothing."""
    return "killed" if description.killed else description.source


def total_line(listed: Sequence[ListedSnapshot]) -> str:
    """Return how many snapshots of how many stores there are."""
    stores = {item.store for item in listed}
    return f"{count(len(listed), 'snapshot')} of {count(len(stores), 'store')}"


def _position_document(position: Position) -> dict[str, Any]:
    fence = position.fence
    return {
        "topic": position.position.changelog.topic,
        "partition": position.position.changelog.partition,
        "applied_offset": position.position.applied_offset,
        "resume_offset": position.position.resume_offset,
        "fence": fence,
    }

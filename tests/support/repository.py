"""Repositories in a local folder, and snapshots of made-up stores to put there."""

from datetime import UTC, datetime
from pathlib import Path

from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.snapshot import (
    FORMAT,
    Description,
    FileEntry,
    Manifest,
    Position,
    Snapshot,
)
from snapstore.model.store import ChangelogPosition
from snapstore.ports import Layout
from snapstore.registry import Registry
from snapstore.repository import Repository
from snapstore.storages.local import LocalStorage

NOON = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
COUNTS = StoreId("orders", "0_1", "counts")


def make_repository(folder: Path) -> Repository:
    return Repository.create(LocalStorage(folder.as_uri()), created_at=NOON)


def describe(
    store: StoreId = COUNTS,
    *,
    offsets: tuple[int, ...] = (100,),
    captured_at: datetime = NOON,
    instance: str = "host-a",
    topic: str = "orders-counts-changelog",
) -> Description:
    return Description(
        store=store,
        layout="kafka-streams",
        backend="rocksdb",
        store_type="key-value",
        generation="kafka-streams-4.0",
        root=f"rocksdb/{store.store}",
        databases=(f"rocksdb/{store.store}",),
        positions=tuple(
            Position(position=ChangelogPosition(ChangelogPartition(topic, number), offset))
            for number, offset in enumerate(offsets)
        ),
        captured_at=captured_at,
        source="closed",
        instance=instance,
        run="r1",
        writer="snapstore 0",
    )


def publish(
    repository: Repository, description: Description, files: tuple[FileEntry, ...] = ()
) -> ListedSnapshot:
    """Put a manifest and its entry; the blobs are up to the test."""
    manifest = Manifest(format=FORMAT, description=description, files=files)
    return repository.catalog.publish(
        Snapshot(
            format=FORMAT,
            id=repository.manifests.put(manifest),
            description=description,
            files=len(files),
            size_bytes=sum(file.size for file in files),
            new_files=len(files),
            new_bytes=sum(file.size for file in files),
        )
    )


def layout_of(name: str) -> Layout:
    """The layout of that name, with its default options."""
    return Registry().layout(name, {})

"""A repository whose time is a test's own, with writers, pruners and repairers."""

import hashlib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Event, Noted
from snapstore.model.retention import RetentionPolicy
from snapstore.model.snapshot import FileEntry
from snapstore.model.store import BytesSource
from snapstore.operations.prune import PruneOptions, plan_prune, prune
from snapstore.operations.prune_report import PruneReport
from snapstore.operations.upkeep import Actor
from snapstore.ports import ObjectStorage
from snapstore.repository import Repository, keys, read_blob
from snapstore.storages.local import LocalStorage
from snapstore.testing.clocks import DatedStorage, Dates, HandClock
from tests.support.repository import COUNTS, describe, publish

DAY = timedelta(days=1)
WAIT = timedelta(hours=25)
"""Longer than the longest run and the margin."""
LATER = WAIT + timedelta(minutes=1)


class PruneLab:
    """Snapshots are made of files whose content is their name, repeated."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock()
        self.dates = Dates(self.clock)
        self.folder = folder
        self.storage: ObjectStorage = self.connect()
        self.repository = Repository.create(self.storage, created_at=self.clock())
        self.events: list[Event] = []
        self._runs = 0

    def connect(self) -> DatedStorage:
        """Return the storage as another host sees it."""
        return DatedStorage(LocalStorage(self.folder.as_uri()), self.dates)

    def later(self, by: timedelta = LATER) -> None:
        self.clock.advance(by)

    def save(
        self, offset: int, *names: str, store: StoreId = COUNTS, run: str | None = None
    ) -> ListedSnapshot:
        """Take a snapshot of files of these names."""
        entries = self.send(*names, run=run)
        description = describe(store, offsets=(offset,), captured_at=self.clock())
        return publish(self.repository, description, entries)

    def send(self, *names: str, run: str | None = None) -> tuple[FileEntry, ...]:
        """Store files without a snapshot."""
        self._runs += 1
        writer = self.repository.begin_run(run or f"run{self._runs}")
        entries = []
        for name in names:
            body = content(name)
            sha256 = hashlib.sha256(body).hexdigest()
            blob = writer.put(BytesSource(body), sha256, {})
            entries.append(
                FileEntry(
                    name=f"{name}.sst", size=len(body), mode=0o644, sha256=sha256, blob=blob.name
                )
            )
        return tuple(entries)

    def options(self, **rules: int | timedelta | None) -> PruneOptions:
        policy = RetentionPolicy(**(rules or {"keep_last": 1}))  # type: ignore[arg-type]
        return PruneOptions(policy=policy, parallel=2)

    def prune(
        self, options: PruneOptions | None = None, *, storage: ObjectStorage | None = None
    ) -> PruneReport:
        self._runs += 1
        repository = Repository(storage or self.storage, self.repository.marker)
        return prune(
            repository,
            options or self.options(),
            Actor(run=f"prune{self._runs}", holder="tests"),
            clock=self.clock,
            listener=self.events.append,
        )

    def plan(self, options: PruneOptions | None = None) -> PruneReport:
        return plan_prune(self.repository, options or self.options(), clock=self.clock)

    @property
    def notes(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noted)]

    def names(self) -> set[str]:
        """Return the contents of all blobs: the names of the files that they were of."""
        found = set()
        for stat in self.repository.storage.list(keys.BLOBS):
            blob = keys.parse_blob(stat.key)
            body = b"".join(read_blob(self.storage, blob, start=0, stop=stat.size))
            found.add(body.split(b" ")[0].decode())
        return found

    def objects(self, prefix: str = "") -> list[str]:
        return sorted(stat.key for stat in self.storage.list(prefix))

    def listed(self) -> list[int | None]:
        """Return the offsets of all listed snapshots, the newest first."""
        return [each.applied_offset for each in self.repository.catalog.list_all().snapshots]

    def require_whole(self) -> None:
        """Every listed snapshot can be restored: each blob is there and hashes to its name."""
        listing = self.repository.catalog.list_all()
        assert not listing.foreign
        for listed in listing.snapshots:
            for file in self.repository.manifests.load(listed.id).files:
                assert file.blob is not None
                body = b"".join(read_blob(self.storage, file.blob, start=0, stop=file.size))
                assert hashlib.sha256(body).hexdigest() == file.sha256


def content(name: str) -> bytes:
    return f"{name} ".encode() * 100


def sizes(*names: str) -> int:
    return sum(len(content(name)) for name in names)


def files(entries: tuple[FileEntry, ...]) -> Mapping[str, str | None]:
    return {entry.name: entry.blob for entry in entries}

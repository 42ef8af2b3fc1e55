"""A repository and what it takes to put snapshots into it."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from snapstore.model.report import Event, Noted
from snapstore.model.snapshot import Manifest
from snapstore.operations.snapshot import SnapshotOptions, take_snapshots
from snapstore.operations.snapshot_plan import Selection, SnapshotPlan, plan_snapshot
from snapstore.operations.snapshot_report import SnapshotReport, StoreOutcome
from snapstore.operations.snapshot_store import RunFacts
from snapstore.ports import Layout, ObjectStorage, StoreBackend
from snapstore.repository import HashCache, Repository, keys, read_blob
from snapstore.storages.local import LocalStorage
from tests.support.folder_store import FolderBackend, folder_layout


class SnapshotLab:
    """Snapshots of one folder store, unless another layout and backend are given.

    ``clock`` starts now, half a minute ahead so that no file is too young to be remembered, and
    moves as a test says. ``tags`` are those of each run.
    """

    def __init__(
        self,
        folder: Path,
        *,
        layout: Layout | None = None,
        backends: Mapping[str, StoreBackend] | None = None,
        storage: ObjectStorage | None = None,
        cached: bool = True,
    ) -> None:
        url = (folder / "repository").as_uri()
        if not (folder / "repository").exists():
            Repository.create(LocalStorage(url), created_at=datetime.now(UTC))
        self.repository = Repository.open(LocalStorage(url))
        self.working = Repository(storage or LocalStorage(url), self.repository.marker)
        self.backend = FolderBackend()
        self.layout = layout or folder_layout()
        self.backends = backends or {"folder": self.backend}
        self.cache = folder / "hashes" if cached else None
        self.ahead = timedelta(seconds=30)
        self.events: list[Event] = []
        self.tags: dict[str, str] = {}
        self._runs = 0

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def save(
        self, state_dir: Path, options: SnapshotOptions | None = None, *, run: str | None = None
    ) -> SnapshotReport:
        return self.take(self.plan(state_dir), options, run=run)

    def plan(self, state_dir: Path) -> SnapshotPlan:
        return plan_snapshot(self.layout.discover(state_dir), Selection())

    def take(
        self, plan: SnapshotPlan, options: SnapshotOptions | None = None, *, run: str | None = None
    ) -> SnapshotReport:
        self._runs += 1
        return take_snapshots(
            plan,
            self.working,
            RunFacts(
                run=run or f"run{self._runs}", instance="here", writer="tests", tags=self.tags
            ),
            options or SnapshotOptions(),
            layout=self.layout,
            backends=self.backends,
            clock=self.clock,
            listener=self.heard,
            cache=None if self.cache is None else HashCache(self.cache),
        )

    def save_one(self, state_dir: Path, options: SnapshotOptions | None = None) -> StoreOutcome:
        (outcome,) = self.save(state_dir, options).outcomes
        return outcome

    def heard(self, event: Event) -> None:
        self.events.append(event)

    @property
    def notes(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noted)]

    def contents(self) -> list[dict[str, bytes]]:
        """Return the files of every listed snapshot, the newest first, each byte checked."""
        listing = self.repository.catalog.list_all()
        assert not listing.foreign
        return [self.content_of(item.id) for item in listing.snapshots]

    def content_of(self, snapshot_id: str) -> dict[str, bytes]:
        manifest = self.repository.manifests.load(snapshot_id)
        return {
            file.name: content_of(self.repository, manifest, file.name) for file in manifest.files
        }

    def blobs(self) -> list[str]:
        return [stat.key for stat in self.repository.storage.list(keys.BLOBS)]


def content_of(repository: Repository, manifest: Manifest, name: str) -> bytes:
    """Read one file of a snapshot, and check it against its hash."""
    (file,) = (file for file in manifest.files if file.name == name)
    if file.inline is not None:
        return file.inline
    assert file.blob is not None
    content = b"".join(read_blob(repository.storage, file.blob, start=0, stop=file.size))
    assert hashlib.sha256(content).hexdigest() == file.sha256
    return content

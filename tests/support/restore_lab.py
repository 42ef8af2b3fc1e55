"""A repository, real stores, and what it takes to save and restore them."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.layouts.kafka_streams import KafkaStreamsLayout
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Advanced, Event, Noted
from snapstore.operations.restore import (
    RestoreOptions,
    RestorePorts,
    plan_restore,
    restore,
)
from snapstore.operations.restore_choice import Check, Request
from snapstore.operations.restore_plan import RestorePlan
from snapstore.operations.restore_report import RestoreReport
from snapstore.operations.snapshot import SnapshotOptions, take_snapshots
from snapstore.operations.snapshot_plan import Selection, plan_snapshot
from snapstore.operations.snapshot_report import StoreOutcome
from snapstore.operations.snapshot_store import RunFacts
from snapstore.ports import ObjectStorage
from snapstore.repository import Repository
from snapstore.repository import keys as repository_keys
from snapstore.storages.local import LocalStorage
from tests.support.no_exchange import forbid_exchange
from tests.support.rocksdb import raw_contents

UNCHECKED = RestoreOptions(allow_unchecked_changelog=True)
REPLACE = RestoreOptions(allow_unchecked_changelog=True, replace=True)


class RestoreLab:
    """Works in one folder: ``repository`` below it, state directories wherever a test puts them."""

    def __init__(self, folder: Path, repository: Repository | None = None) -> None:
        self.folder = folder
        self.storage = LocalStorage((folder / "repository").as_uri())
        self.repository = repository or Repository.create(self.storage, created_at=utc_now())
        self.layout = KafkaStreamsLayout()
        self.backends = {"rocksdb": RocksDBBackend()}
        self.events: list[Event] = []
        self.ahead = timedelta()
        self._runs = 0

    def clock(self) -> datetime:
        """Show the present time and so much more."""
        return utc_now() + self.ahead

    @classmethod
    def reopened(cls, folder: Path) -> "RestoreLab":
        storage = LocalStorage((folder / "repository").as_uri())
        return cls(folder, Repository.open(storage))

    def save(self, state_dir: Path, *, failing: Sequence[str] = ()) -> tuple[StoreOutcome, ...]:
        """Take a snapshot of every store below a state directory; those named must fail."""
        self._runs += 1
        report = take_snapshots(
            plan_snapshot(self.layout.discover(state_dir), Selection()),
            self.repository,
            RunFacts(run=f"run{self._runs}", instance="here", writer="tests"),
            SnapshotOptions(),
            layout=self.layout,
            backends=self.backends,
            clock=self.clock,
            listener=self.events.append,
            cache=None,
        )
        failed = [outcome.store.store for outcome in report.failed]
        assert failed == [*failing], report.failed
        return report.outcomes

    def listed(self, *, task: str | None = None, store: str | None = None) -> list[ListedSnapshot]:
        return [
            item
            for item in self.repository.catalog.list_all().snapshots
            if (task is None or item.store.task == task)
            and (store is None or item.store.store == store)
        ]

    def requests(
        self, *, task: str | None = None, store: str | None = None, latest: bool = True
    ) -> list[Request]:
        by_store: dict[StoreId, list[ListedSnapshot]] = {}
        for item in self.listed(task=task, store=store):
            by_store.setdefault(item.store, []).append(item)
        return [Request(candidates=tuple(items), latest=latest) for items in by_store.values()]

    def restore(
        self,
        target: Path,
        requests: Sequence[Request] | None = None,
        options: RestoreOptions = UNCHECKED,
        *,
        storage: ObjectStorage | None = None,
        check: Check | None = None,
        reached: Callable[[str], None] = lambda _: None,
    ) -> RestoreReport:
        """Restore, by default everything, to a state directory."""
        ports = self.ports(storage=storage, check=check, reached=reached)
        return restore(self.requests() if requests is None else requests, target, ports, options)

    def plan(
        self,
        target: Path,
        requests: Sequence[Request] | None = None,
        options: RestoreOptions = UNCHECKED,
    ) -> RestorePlan:
        return plan_restore(
            self.requests() if requests is None else requests, target, self.ports(), options
        )

    def ports(
        self,
        *,
        storage: ObjectStorage | None = None,
        check: Check | None = None,
        reached: Callable[[str], None] = lambda _: None,
    ) -> RestorePorts:
        return RestorePorts(
            repository=self.repository if storage is None else Repository.open(storage),
            layout=self.layout,
            backends=self.backends,
            check=check,
            clock=self.clock,
            listener=self.events.append,
            reached=reached,
        )

    @property
    def notes(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noted)]

    @property
    def downloaded_bytes(self) -> int:
        return sum(
            event.amount
            for event in self.events
            if isinstance(event, Advanced) and event.stage == "download"
        )

    def blobs_of(self, listed: ListedSnapshot) -> dict[str, Path]:
        """Return the files of the repository that hold a snapshot's blobs, by the files' names."""
        manifest = self.repository.manifests.load(listed.id)
        return {
            entry.name: self.folder / "repository" / repository_keys.blob(entry.blob)
            for entry in manifest.files
            if entry.blob is not None
        }


class CountingStorage(LocalStorage):
    """A local storage whose reads come in small pieces, are counted and may be cut short.

    After ``budget_bytes`` in all, reads raise ``failure``.
    """

    def __init__(
        self,
        url: str,
        *,
        budget_bytes: int | None = None,
        failure: Exception | None = None,
        chunk_bytes: int = 4096,
    ) -> None:
        super().__init__(url)
        self._budget_bytes = budget_bytes
        self._failure = failure
        self._chunk_bytes = chunk_bytes
        self._lock = threading.Lock()
        self.read_bytes = 0
        self.starts: list[int] = []

    def read(self, key: str, *, start: int, stop: int) -> Iterator[bytes]:
        self.starts.append(start)
        for chunk in super().read(key, start=start, stop=stop):
            for position in range(0, len(chunk), self._chunk_bytes):
                piece = chunk[position : position + self._chunk_bytes]
                self._count(len(piece))
                yield piece

    def _count(self, amount: int) -> None:
        with self._lock:
            spent = self._budget_bytes is not None and self.read_bytes >= self._budget_bytes
            if spent and self._failure is not None:
                raise self._failure
            self.read_bytes += amount


def utc_now() -> datetime:
    return datetime.now(UTC)


def restore_all(
    reached: Callable[[str], None],
    *,
    folder: str,
    target: str,
    slow_reads: str = "",
    exchange: str = "yes",
) -> None:
    """What a child process does that is to be killed: restore everything, replacing what is there.

    With ``slow_reads`` bytes arrive in small pieces, so that there are points within a file.
    """
    if exchange == "no":
        forbid_exchange()
    lab = RestoreLab.reopened(Path(folder))
    chunk_bytes = int(slow_reads) if slow_reads else 1 << 20
    storage = CountingStorage(lab.storage.url, chunk_bytes=chunk_bytes)
    lab.restore(Path(target), options=REPLACE, storage=storage, reached=reached)


def contents(state_dir: Path, scratch: Path) -> dict[str, object]:
    """Return all pairs of all databases below a directory, read from copies without snapstore."""
    scratch.mkdir(parents=True, exist_ok=True)
    return {
        str(current.parent.relative_to(state_dir)): raw_contents(current.parent, scratch)
        for current in sorted(state_dir.rglob("CURRENT"))
        if ".snapstore" not in current.parts
    }


def tree(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, to see whether anything changed."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): os.lstat(path).st_mode & 0o7777
        for path in sorted(folder.rglob("*"))
    }

"""Several hosts with clocks of their own that save, prune and repair in one repository."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from snapstore.model.report import Event
from snapstore.model.retention import RetentionPolicy
from snapstore.operations.prune import PruneOptions, prune
from snapstore.operations.prune_report import PruneReport
from snapstore.operations.repair import RepairOptions, repair
from snapstore.operations.repair_plan import RepairReport
from snapstore.operations.snapshot import SnapshotOptions, take_snapshots
from snapstore.operations.snapshot_plan import Selection, plan_snapshot
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.operations.snapshot_store import RunFacts
from snapstore.operations.upkeep import Actor
from snapstore.ports import ObjectStorage
from snapstore.repository import HashCache, Repository, keys
from snapstore.storages.local import LocalStorage
from snapstore.testing.clocks import DatedStorage, Dates, HandClock
from snapstore.testing.turns import Program
from tests.support.folder_store import FolderBackend, folder_layout, write_store

LAG = timedelta(minutes=25)
"""How far behind a listing may be; less than half of the margin that sweeps keep."""

Report = SnapshotReport | PruneReport | RepairReport


class Host:
    """A host: its clock, its copies of the stores, what it remembers of their hashes."""

    def __init__(self, fleet: "Fleet", name: str) -> None:
        self.name = name
        self.folder = fleet.folder / name
        self.folder.mkdir()
        self.ahead = timedelta(0)
        self._fleet = fleet

    def clock(self) -> datetime:
        return self._fleet.clock() + self.ahead

    def state_of(self, store: str) -> Path:
        return self.folder / store


class Fleet:
    """The world: the time that really passes, which is also the storage's, and the repository."""

    def __init__(self, hosts: int = 3, longest_run: timedelta = timedelta(hours=24)) -> None:
        memory = Path("/dev/shm")
        parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="snapstore-fleet-", dir=parent))
        self.clock = HandClock(datetime(2040, 1, 1, tzinfo=UTC))
        self.dates = Dates(self.clock)
        self.bare = LocalStorage((self.folder / "repository").as_uri())
        self.storage = DatedStorage(self.bare, self.dates)
        self.repository = Repository.create(
            self.storage, created_at=self.clock(), longest_run=longest_run
        )
        self.hosts = [Host(self, f"host-{number}") for number in range(hosts)]
        self.pruners_marker = self.repository.marker
        self.offset = 0
        self._began = self.clock()
        self._runs = 0
        self._sound: dict[str, set[str]] = {}

    def close(self) -> None:
        shutil.rmtree(self.folder)

    def monotonic(self) -> float:
        return (self.clock() - self._began).total_seconds()

    def change(self, host: Host, store: str, files: Mapping[str, bytes]) -> None:
        """The application goes on: other files, at a higher offset."""
        self.offset += 1
        shutil.rmtree(host.state_of(store), ignore_errors=True)
        write_store(host.state_of(store), files, self.offset)

    def save(
        self, host: Host, store: str, *, lag: bool = False, skip_unchanged: bool = False
    ) -> Program[Report]:
        run = self._run("save")
        layout = folder_layout(store)
        options = SnapshotOptions(
            parallel_stores=1, transfers=1, attempts=2, skip_unchanged=skip_unchanged
        )

        def work(storage: ObjectStorage) -> SnapshotReport:
            return take_snapshots(
                plan_snapshot(layout.discover(host.state_of(store)), Selection()),
                Repository(storage, self.repository.marker),
                RunFacts(run=run, instance=host.name, writer="tests"),
                options,
                layout=layout,
                backends={"folder": FolderBackend()},
                clock=host.clock,
                listener=_nobody,
                cache=HashCache(host.folder / "hashes"),
                monotonic=self.monotonic,
            )

        return self._program(f"{run} of {store} on {host.name}", lag, work)

    def prune(self, host: Host, policy: RetentionPolicy, *, lag: bool = False) -> Program[Report]:
        run = self._run("prune")

        def work(storage: ObjectStorage) -> PruneReport:
            return prune(
                Repository(storage, self.pruners_marker),
                PruneOptions(policy=policy, parallel=1),
                Actor(run=run, holder=f"{run} on {host.name}"),
                clock=host.clock,
                listener=_nobody,
                monotonic=self.monotonic,
            )

        return self._program(f"{run} on {host.name}", lag, work)

    def repair(self, host: Host, *, lag: bool = False) -> Program[Report]:
        run = self._run("repair")

        def work(storage: ObjectStorage) -> RepairReport:
            return repair(
                Repository(storage, self.repository.marker),
                RepairOptions(parallel=1),
                Actor(run=run, holder=f"{run} on {host.name}"),
                clock=host.clock,
                listener=_nobody,
                monotonic=self.monotonic,
            )

        return self._program(f"{run} on {host.name}", lag, work)

    def delete(self, host: Host, number: int) -> None:
        """Take one of the listed snapshots out by hand."""
        listed = self.repository.catalog.list_all().snapshots
        if listed:
            now = host.clock()
            chosen = listed[number % len(listed)]
            self.repository.withdraw([chosen], run=self._run("delete"), now=now)

    def require_every_snapshot_whole(self) -> None:
        """Every listed snapshot has its manifest and all its blobs, and each hashes to its name."""
        listing = self.repository.catalog.list_all()
        assert not listing.foreign
        for listed in listing.snapshots:
            snapshot = self.repository.catalog.load(listed)
            manifest = self.repository.manifests.load(listed.id)
            assert manifest.description == snapshot.description
            for file in manifest.files:
                if file.blob is not None:
                    path = self.bare.root / keys.blob(file.blob)
                    assert path.exists(), f"{listed.id[:12]} of {listed.store} lost {file.name}"
                    body = path.read_bytes()
                    assert hashlib.sha256(body).hexdigest() == file.sha256
                    assert len(body) == file.size
        assert not self.objects(keys.QUARANTINE), "nothing was ever damaged"

    def require_nothing_left_over(self) -> None:
        """There is nothing but what the listed snapshots need, and the marks of the last prune."""
        needed = {keys.MARKER, keys.MARKER_COPY}
        for listed in self.repository.catalog.list_all().snapshots:
            manifest = self.repository.manifests.load(listed.id)
            needed |= {keys.entry(listed), keys.manifest(listed.id)}
            needed |= {keys.blob(file.blob) for file in manifest.files if file.blob is not None}
        left = {key for key in self.objects("") if not key.startswith(keys.LEASES)} - needed
        named = {key.rpartition("/")[2] for key in needed if key.startswith(keys.BLOBS)}
        dead_but_needed = {keys.condemned(name) for name in named}
        assert not left - dead_but_needed
        assert len(self.objects(keys.LEASES)) <= 2
        assert not [*self.bare.unfinished_uploads()]

    def objects(self, prefix: str) -> list[str]:
        return [stat.key for stat in self.bare.list(prefix)]

    def disagree_on_the_longest_run(self) -> None:
        """Let those who prune believe that no run takes longer than a second."""
        self.pruners_marker = msgspec.structs.replace(self.repository.marker, longest_run_s=1)

    def _run(self, kind: str) -> str:
        self._runs += 1
        return f"{kind}{self._runs}"

    def _program(self, name: str, lag: bool, work: object) -> Program[Report]:
        storage = DatedStorage(self.bare, self.dates, lag=LAG if lag else timedelta(0))
        return Program(storage, work, name=name)  # type: ignore[arg-type]


def _nobody(event: Event) -> None:
    del event

"""The verb that takes snapshots, and the one that looks at the stores."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, overload

from snapstore import __version__
from snapstore.client.capturing import Capturing
from snapstore.client.catalog import CatalogVerbs
from snapstore.client.moments import run_id, utc_now
from snapstore.client.own_cache import own_cache
from snapstore.client.parts import (
    ConfiguredBackends,
    changelog_unless_away,
    configured_changelog,
    configured_layout,
    state_dir,
    watching_locks,
)
from snapstore.config import Config
from snapstore.model.report import nobody
from snapstore.operations.clocks import require_same_time
from snapstore.operations.discover import DiscoverReport, discover
from snapstore.operations.nearby import pointing
from snapstore.operations.run_lock import run_lock
from snapstore.operations.snapshot import SnapshotOptions, take_snapshots
from snapstore.operations.snapshot_plan import Selection, SnapshotPlan, plan_snapshot
from snapstore.operations.snapshot_report import SnapshotReport, unproved
from snapstore.operations.snapshot_store import RunFacts
from snapstore.ports import Changelog, Clock, Listener
from snapstore.registry import Registry
from snapstore.repository import HashCache, Repository

if TYPE_CHECKING:
    from snapstore.operations.capture_choice import CaptureMode


class SnapshotVerbs(CatalogVerbs):
    """Takes snapshots, and looks at what there is to take. A context manager."""

    def __init__(
        self,
        config: Config,
        repository: Repository,
        *,
        registry: Registry | None = None,
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(config, repository, clock)
        self.registry = registry or Registry()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self.repository.storage.close()

    @property
    def url(self) -> str:
        return self.repository.storage.url

    def discover(
        self,
        directory: Path | str | None = None,
        *,
        application: str | None = None,
        layout: str | None = None,
    ) -> DiscoverReport:
        """Look at every store below a state directory, by reading only."""
        return discover(
            state_dir(self.config, directory),
            application or self.config.state.application,
            layout=configured_layout(self.config, self.registry, layout),
            backends=ConfiguredBackends(self.config, self.registry),
            clock=self.clock,
        )

    @overload
    def snapshot(
        self,
        directory: Path | str | None = None,
        *,
        stores: Sequence[str] = (),
        tasks: Sequence[str] = (),
        application: str | None = None,
        layout: str | None = None,
        tags: Mapping[str, str] | None = None,
        skip_unchanged: bool = False,
        capture: "CaptureMode | None" = None,
        listener: Listener = nobody,
        dry_run: Literal[False] = False,
    ) -> SnapshotReport: ...

    @overload
    def snapshot(
        self,
        directory: Path | str | None = None,
        *,
        stores: Sequence[str] = (),
        tasks: Sequence[str] = (),
        application: str | None = None,
        layout: str | None = None,
        tags: Mapping[str, str] | None = None,
        skip_unchanged: bool = False,
        capture: "CaptureMode | None" = None,
        listener: Listener = nobody,
        dry_run: Literal[True],
    ) -> SnapshotPlan: ...

    def snapshot(
        self,
        directory: Path | str | None = None,
        *,
        stores: Sequence[str] = (),
        tasks: Sequence[str] = (),
        application: str | None = None,
        layout: str | None = None,
        tags: Mapping[str, str] | None = None,
        skip_unchanged: bool = False,
        capture: "CaptureMode | None" = None,
        listener: Listener = nobody,
        dry_run: bool = False,
    ) -> SnapshotReport | SnapshotPlan:
        """Take a snapshot of every store below a state directory, or of those that are named.

        ``capture`` says where they are taken from, in place of the configuration's. A store that
        fails stops no other: look at ``report.failed``. With ``dry_run`` the plan is returned.
        Raises StoreNotFoundError for a name that fits nothing, ConfigError, and
        RunInProgressError when another process is at it, and ClockDiffersError.
        """
        chosen = configured_layout(self.config, self.registry, layout)
        application = application or self.config.state.application
        selection = Selection(
            applications=() if application is None else (application,),
            tasks=tuple(tasks),
            stores=tuple(stores),
        )
        backends = ConfiguredBackends(self.config, self.registry)
        named = directory is not None or self.config.state.dir is not None
        place = state_dir(self.config, directory) if named else None
        disk_only = (capture or self.config.snapshot.capture) == "disk"
        changelog_read = self._changelog(listener, needed=not disk_only)
        with watching_locks(chosen), changelog_read as changelog:
            ports = None
            if changelog is not None:
                # Imported here: without Kafka nothing is replayed.
                from snapstore.model.resume import Overrides
                from snapstore.operations.replay import ReplayPorts

                ports = ReplayPorts(
                    changelog=changelog,
                    layout=chosen,
                    backends=backends,
                    overrides=Overrides(),
                    clock=self.clock,
                    listener=listener,
                )
            work = self._own_cache / "work"
            capturing = Capturing(self.config, self.repository, chosen, ports, work, capture)
            with pointing(place, chosen, application):
                plan = plan_snapshot(capturing.discover(place, application, selection), selection)
            if dry_run:
                return plan
            fenced = self.config.kafka.bootstrap is not None
            require_same_time(self.repository.storage, self.clock, fenced=fenced)
            now = self.clock()
            facts = RunFacts(
                run=run_id(now),
                instance=self.config.state.instance or socket.gethostname(),
                writer=f"snapstore {__version__}",
                tags=dict(tags or {}),
            )
            options = SnapshotOptions(
                transfers=self.config.transfer.parallel,
                limit_rate_bytes_per_s=self.config.transfer.limit_rate,
                skip_unchanged=skip_unchanged,
            )
            with self._run_locks(plan, now):
                report = take_snapshots(
                    plan,
                    self.repository,
                    facts,
                    options,
                    layout=chosen,
                    backends=backends,
                    clock=self.clock,
                    listener=listener,
                    cache=HashCache(self._own_cache / "hashes"),
                    changelog=changelog,
                    capture=capturing.chooser(),
                )
            away = changelog is None and self.config.kafka.bootstrap is not None
            return unproved(report) if away else report

    @contextmanager
    def _run_locks(self, plan: SnapshotPlan, now: datetime) -> Iterator[None]:
        """Hold the lock of every application of the plan."""
        with ExitStack() as held:
            for name in sorted({location.store.application for location in plan.locations}):
                held.enter_context(run_lock(self._own_cache, name, now=now))
            yield

    def _changelog(
        self, listener: Listener, *, needed: bool
    ) -> AbstractContextManager[Changelog | None]:
        if needed:
            return configured_changelog(self.config, self.registry)
        return changelog_unless_away(self.config, self.registry, listener)

    @property
    def _own_cache(self) -> Path:
        """Where this host remembers things about this repository."""
        return own_cache(self.config, self.repository.marker.id)

"""Prove that snapshots bring their stores back: restore, replay, rebuild, and compare.

Each store is restored into a scratch folder and replayed to the end of its changelog as it is just
then; another copy is built from the changelog alone, to the same offset; and the two must hold the
same. Nothing else is written anywhere.
"""

import random
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import msgspec

from snapstore.errors import (
    CaptureError,
    ConfigError,
    IntegrityError,
    NotReplayableError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
    SourceDamagedError,
    UnavailableError,
)
from snapstore.model.content import ContentRules
from snapstore.model.identity import StoreId
from snapstore.model.report import Event, Noted, StoreFinished
from snapstore.model.resume import Overrides
from snapstore.model.snapshot import Description
from snapstore.operations.drill_compare import Scope, compare
from snapstore.operations.drill_judge import RestoredCopy, judged, location_of
from snapstore.operations.drill_report import (
    DrilledStore,
    DrillReport,
    Outcome,
)
from snapstore.operations.rebuild import Rebuilt, logged_keys, rebuild
from snapstore.operations.replay import (
    ReplayPorts,
    plan_replays,
    replay_store,
    require_replayable,
)
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.restore import RestoreOptions, RestorePorts, restore
from snapstore.operations.restore_check import checking
from snapstore.operations.restore_choice import Chooser, Request
from snapstore.operations.restore_plan import Wanted
from snapstore.operations.restore_replay import from_own_offsets
from snapstore.ports import (
    Changelog,
    Clock,
    ContentLayout,
    Layout,
    Listener,
    StoreBackend,
    StoreView,
)
from snapstore.repository import Repository
from snapstore.repository.catalog import listed_of


class DrillPorts(msgspec.Struct, frozen=True, kw_only=True):
    """What a drill works with. ``backends`` are by name."""

    repository: Repository
    layout: Layout
    backends: Mapping[str, StoreBackend]
    changelog: Changelog
    clock: Clock
    listener: Listener


class DrillOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a drill is done.

    ``sample`` stores are drawn with ``seed``; None: all. Each needs room for itself twice below
    ``scratch`` (None: the system's), one after the other. ``shown`` is how many differing keys are
    told.
    """

    sample: int | None = None
    seed: int = 0
    scratch: Path | None = None
    shown: int = 10
    parallel: int = 8
    limit_bytes_per_second: int | None = None


def drill(requests: Sequence[Request], ports: DrillPorts, options: DrillOptions) -> DrillReport:
    """Drill the newest usable snapshot of every request, one store after the other.

    What goes wrong with a store is told in the report and stops no other. Raises ConfigError for a
    scratch folder that is not there.
    """
    if options.scratch is not None and not options.scratch.is_dir():
        raise ConfigError(f"{options.scratch} is not a directory", path=str(options.scratch))
    drawn = draw(requests, options.sample, options.seed)
    run = _Run(ports, options)
    stores = [run.drill(request) for request in drawn]
    return DrillReport(
        stores=tuple(sorted(stores, key=lambda store: store.store.order)),
        candidates=len(requests),
        seed=options.seed,
    )


def draw(requests: Sequence[Request], sample: int | None, seed: int) -> list[Request]:
    """Draw so many stores, the same for the same seed."""
    ordered = sorted(requests, key=lambda request: _store_of(request).order)
    if sample is None or sample >= len(ordered):
        return ordered
    return random.Random(seed).sample(ordered, sample)


def _store_of(request: Request) -> StoreId:
    return request.candidates[0].store


class _Run:
    """Drills store after store."""

    def __init__(self, ports: DrillPorts, options: DrillOptions) -> None:
        self._ports = ports
        self._options = options
        overrides = Overrides()
        self._check = checking(ports.changelog, ports.clock, overrides)
        self._replay_ports = ReplayPorts(
            changelog=ports.changelog,
            layout=ports.layout,
            backends=ports.backends,
            overrides=overrides,
            clock=ports.clock,
            listener=ports.listener,
        )
        self._chooser = Chooser(
            ports.repository,
            check=self._check,
            allow_unchecked_changelog=False,
            application_replays=False,
        )

    def drill(self, request: Request) -> DrilledStore:
        began = time.monotonic()
        drilled = DrilledStore(store=_store_of(request), outcome="skipped")
        try:
            wanted = self._chooser.choose(request)
            drilled = self._about(wanted)
            found = self._proved(wanted, drilled)
        except SnapstoreError as error:
            found = msgspec.structs.replace(
                drilled, outcome=outcome_of(error), code=error.code, reason=error.message
            )
        self._ports.listener(
            StoreFinished(
                store=found.store,
                outcome=found.reason or found.outcome,
                ok=found.outcome in ("equal", "partly", "skipped"),
            )
        )
        return msgspec.structs.replace(found, seconds=time.monotonic() - began)

    def _about(self, wanted: Wanted) -> DrilledStore:
        description = wanted.snapshot.description
        age = self._ports.clock() - description.captured_at
        return DrilledStore(
            store=description.store,
            outcome="skipped",
            snapshot_id=wanted.snapshot.id,
            captured_at=description.captured_at,
            age_seconds=age.total_seconds(),
            behind_records=wanted.records_to_replay,
            passed_over=wanted.skipped,
        )

    def _proved(self, wanted: Wanted, drilled: DrilledStore) -> DrilledStore:
        description = wanted.snapshot.description
        if not description.positions:
            return msgspec.structs.replace(
                drilled, reason="it has no changelog that it could be rebuilt from"
            )
        require_replayable(description, self._replay_ports)
        with TemporaryDirectory(prefix="snapstore-drill-", dir=self._options.scratch) as scratch:
            copy = self._restored(wanted, Path(scratch) / "restored")
            view_of = self._ports.backends[description.backend].open_view
            location = msgspec.structs.replace(
                copy.location, task_dir=Path(scratch) / "rebuilt" / "task"
            )
            stops = [(each.plan.changelog, each.stop) for each in copy.planned]
            with view_of(copy.location.task_dir, description.root) as restored:
                began = time.monotonic()
                built = rebuild(location, stops, self._replay_ports, template=restored)
                rebuild_seconds = time.monotonic() - began
                scope = self._scope(description, restored, copy, built)
                with view_of(location.task_dir, description.root) as rebuilt:
                    comparison = compare(restored, rebuilt, scope)
        return judged(drilled, copy, built, rebuild_seconds, comparison)

    def _restored(self, wanted: Wanted, target: Path) -> RestoredCopy:
        """Restore exactly that snapshot, and replay what follows it."""
        target.mkdir()
        description = wanted.snapshot.description
        listed = listed_of(wanted.snapshot)
        began = time.monotonic()
        report = restore(
            [Request(candidates=(listed,), latest=False)],
            target,
            RestorePorts(
                repository=self._ports.repository,
                layout=self._ports.layout,
                backends=self._ports.backends,
                check=self._check,
                clock=self._ports.clock,
                listener=self._heard,
            ),
            RestoreOptions(
                application_replays=False,
                parallel=self._options.parallel,
                limit_bytes_per_second=self._options.limit_bytes_per_second,
            ),
        )
        restore_seconds = time.monotonic() - began
        (restored,) = report.stores
        location = location_of(wanted, restored.task_dir)
        planned = tuple(
            from_own_offsets(location, each, self._replay_ports)
            for each in plan_replays(description.positions, self._replay_ports, ReplayGoal())
        )
        return RestoredCopy(
            location=location,
            positions=tuple(each.position for each in description.positions),
            restored=restored,
            restore_seconds=restore_seconds,
            planned=planned,
            replayed=replay_store(location, planned, self._replay_ports),
        )

    def _heard(self, event: Event) -> None:
        """Pass on how the restore goes, not its advice: nobody starts on a scratch folder."""
        if not isinstance(event, Noted | StoreFinished):
            self._ports.listener(event)

    def _scope(
        self, description: Description, view: StoreView, copy: RestoredCopy, built: Rebuilt
    ) -> Scope:
        rules = ContentRules()
        if hasattr(self._ports.layout, "content_rules"):
            layout = cast("ContentLayout", self._ports.layout)
            rules = layout.content_rules(copy.location, view, built.states[0])
        exact = description.source != "running" and built.complete

        def still_logged(keys: Collection[bytes]) -> Collection[bytes]:
            return logged_keys(self._ports.changelog, built.replayed, keys)

        return Scope(
            rules=rules,
            latest_only=rules.latest_prefix is not None and not exact,
            still_logged=still_logged if built.start_is_gone else None,
            shown=self._options.shown,
        )


def outcome_of(error: SnapstoreError) -> Outcome:
    """Return what an error says of the snapshot."""
    match error:
        case IntegrityError() | SourceDamagedError():
            return "damaged"
        case NotReplayableError():
            return "skipped"
        case UnavailableError() | CaptureError() | SnapshotNotFoundError():
            return "unavailable"
        case RefusedError():
            return "refused"
        case _:
            raise error

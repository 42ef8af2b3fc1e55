"""Drill one store: restore and replay a copy, rebuild another, and compare them."""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from snapstore.model.content import ContentRules
from snapstore.model.guarantee import of_snapshot
from snapstore.model.report import Event, Noted, StoreFinished
from snapstore.model.resume import Overrides
from snapstore.model.snapshot import Description
from snapstore.model.temporary import temporary_folder
from snapstore.operations.drill_compare import Scope, compare
from snapstore.operations.drill_judge import RestoredCopy, judged, location_of
from snapstore.operations.drill_report import DrilledStore
from snapstore.operations.guarantee import configured_guarantee
from snapstore.operations.proof import Proof
from snapstore.operations.rebuild import Rebuilt, logged_keys, rebuild
from snapstore.operations.replay import (
    ReplayPorts,
    plan_replays,
    replay_store,
    require_replayable,
)
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.operations.restore import RestoreOptions, RestorePorts, restore
from snapstore.operations.restore_choice import Request
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
    """What a drill works with. ``backends`` are by name, and so is what ``layouts`` returns."""

    repository: Repository
    layouts: Callable[[str], Layout]
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


class ScratchLayout:
    """A layout for a folder that no application will open: nothing there must be fit for one."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._layout, name)

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:
        """Also a store that its application keeps in memory may lie there."""
        del target, description
        return ()


class StoreDrill:
    """Proves one snapshot of one store."""

    def __init__(
        self, wanted: Wanted, layout: Layout, ports: DrillPorts, options: DrillOptions
    ) -> None:
        self._wanted = wanted
        self._description = wanted.snapshot.description
        self._layout = layout
        self._ports = ports
        self._options = options
        self._replay_ports = ReplayPorts(
            changelog=ports.changelog,
            layout=layout,
            backends=ports.backends,
            overrides=Overrides(),
            clock=ports.clock,
            listener=ports.listener,
        )

    def prove(self, drilled: DrilledStore) -> DrilledStore:
        """Return what was found. Raises SnapstoreError where something was not possible."""
        description = self._description
        require_replayable(description, self._replay_ports)
        with temporary_folder(self._options.scratch, of="a store", setting="--scratch") as scratch:
            copy = self._restored(scratch / "restored")
            view_of = self._ports.backends[description.backend].open_view
            location = msgspec.structs.replace(copy.location, task_dir=scratch / "rebuilt" / "task")
            stops = [(each.plan.changelog, each.stop) for each in copy.planned]
            with view_of(copy.location.task_dir, description.root) as restored:
                began = time.monotonic()
                built = rebuild(location, stops, self._replay_ports, template=restored)
                rebuild_seconds = time.monotonic() - began
                scope = self._scope(restored, copy, built)
                with view_of(location.task_dir, description.root) as rebuilt:
                    comparison = compare(restored, rebuilt, scope)
        return judged(drilled, copy, built, rebuild_seconds, comparison)

    def _restored(self, target: Path) -> RestoredCopy:
        """Restore exactly that snapshot, and replay what follows it."""
        target.mkdir()
        ports, description = self._ports, self._description
        listed = listed_of(self._wanted.snapshot)
        began = time.monotonic()
        report = restore(
            [Request(candidates=(listed,), latest=False)],
            target,
            RestorePorts(
                repository=ports.repository,
                layout=cast("Layout", ScratchLayout(self._layout)),
                backends=ports.backends,
                check=Proof(
                    ports.changelog, ports.repository.catalog, ports.layouts, ports.clock
                ).check,
                clock=ports.clock,
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
        location = location_of(self._wanted, restored.task_dir)
        guarantee = of_snapshot(description, configured_guarantee(self._layout))
        planned = tuple(
            from_own_offsets(location, each, self._replay_ports, guarantee)
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

    def _scope(self, view: StoreView, copy: RestoredCopy, built: Rebuilt) -> Scope:
        rules = ContentRules()
        if hasattr(self._layout, "content_rules"):
            layout = cast("ContentLayout", self._layout)
            rules = layout.content_rules(copy.location, view, built.states[0])
        exact = self._description.source != "running" and built.complete

        def still_logged(keys: Collection[bytes]) -> Collection[bytes]:
            return logged_keys(self._ports.changelog, built.replayed, keys)

        return Scope(
            rules=rules,
            latest_only=rules.latest_prefix is not None and not exact,
            still_logged=still_logged if built.start_is_gone else None,
            shown=self._options.shown,
        )

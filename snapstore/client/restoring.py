"""The verb that brings stores back."""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, overload

from snapstore.client.owner import permissions
from snapstore.client.parts import (
    ConfiguredBackends,
    configured_layout,
    state_dir,
)
from snapstore.client.proof import ProofVerbs
from snapstore.client.remembered import lineage_of
from snapstore.client.requests import requests_for_refs, requests_for_stores
from snapstore.errors import ConfigError, IntegrityError, SnapshotNotFoundError
from snapstore.model.report import Noted, nobody
from snapstore.model.resume import Overrides
from snapstore.model.snapshot import Position
from snapstore.operations.clocks import later_clock
from snapstore.operations.lineage import Remember
from snapstore.operations.proof import Proof
from snapstore.operations.replay import ReplayPorts
from snapstore.operations.replay_plan import ReplayGoal, require_one
from snapstore.operations.restore import RestoreOptions, RestorePorts, plan_restore, restore
from snapstore.operations.restore_choice import Request
from snapstore.operations.restore_plan import RestorePlan
from snapstore.operations.restore_replay import StagedReplay
from snapstore.operations.restore_report import RestoreReport
from snapstore.ports import Changelog, Listener


class RestoreVerbs(ProofVerbs):
    """Restores, to where no application runs."""

    @overload
    def restore(
        self,
        refs: Iterable[str] = (),
        *,
        target: Path | str | None = None,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        replace: bool = False,
        keep_replaced: bool = False,
        allow_unchecked_changelog: bool = False,
        allow_missed_tombstones: bool = False,
        missing_ok: bool = False,
        skip_unrestorable: bool = False,
        set_aside: Mapping[str, str] | None = None,
        version: str | None = None,
        replay: ReplayGoal | None = None,
        listener: Listener = nobody,
        dry_run: Literal[False] = False,
    ) -> RestoreReport: ...

    @overload
    def restore(
        self,
        refs: Iterable[str] = (),
        *,
        target: Path | str | None = None,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        replace: bool = False,
        keep_replaced: bool = False,
        allow_unchecked_changelog: bool = False,
        allow_missed_tombstones: bool = False,
        missing_ok: bool = False,
        skip_unrestorable: bool = False,
        set_aside: Mapping[str, str] | None = None,
        version: str | None = None,
        replay: ReplayGoal | None = None,
        listener: Listener = nobody,
        dry_run: Literal[True],
    ) -> RestorePlan: ...

    def restore(
        self,
        refs: Iterable[str] = (),
        *,
        target: Path | str | None = None,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        replace: bool = False,
        keep_replaced: bool = False,
        allow_unchecked_changelog: bool = False,
        allow_missed_tombstones: bool = False,
        missing_ok: bool = False,
        skip_unrestorable: bool = False,
        set_aside: Mapping[str, str] | None = None,
        version: str | None = None,
        replay: ReplayGoal | None = None,
        listener: Listener = nobody,
        dry_run: bool = False,
    ) -> RestoreReport | RestorePlan:
        """Bring stores back below a state directory: those named by ``refs``, or of an application.

        With ``missing_ok`` an empty report tells that there is no snapshot; that the repository
        could not be read is an error all the same. With Kafka configured, a snapshot is used only
        if its fence still holds; with ``replay`` the records after it are applied, before anything
        is put into place. One store without a usable snapshot refuses all, unless
        ``skip_unrestorable`` leaves such out: the report names them. ``set_aside`` gives reasons by
        names of stores: what is there of those goes to quarantine rather than away. ``version`` is
        that of the Kafka Streams that will start: what its RocksDB cannot read is refused. With
        ``dry_run`` the plan is returned. Raises SnapshotNotFoundError, PartialFailureError with the
        fact ``report``, and what ``operations.restore`` names.
        """
        place = state_dir(self.config, target)
        requests = self._requests(refs, application, task, store, missing_ok=missing_ok)
        if not requests:
            if dry_run:
                return RestorePlan(target=place, tasks=())
            return RestoreReport(
                target=place, stores=(), kept_stores=(), replaced=(), failed=(), notes=()
            )
        overrides = Overrides(
            allow_unchecked_changelog=allow_unchecked_changelog,
            allow_missed_tombstones=allow_missed_tombstones,
        )
        options = RestoreOptions(
            replace=replace,
            keep_replaced=keep_replaced or self.config.restore.keep_replaced,
            allow_unchecked_changelog=allow_unchecked_changelog,
            permissions=permissions(self.config.restore),
            application_replays=replay is None or not replay.is_end,
            delete_noted=replay is None or replay.is_end,
            skip_unrestorable=skip_unrestorable,
            set_aside=dict(set_aside or {}),
            version=version,
            parallel=self.config.transfer.parallel,
            limit_bytes_per_second=self.config.transfer.limit_rate,
        )
        unchecked = allow_unchecked_changelog and replay is None
        with self._changelog(listener, needed=not unchecked) as changelog:
            clock = later_clock(self.repository.storage, self.clock)
            layout = configured_layout(self.config, self.registry, self._layout_of(requests))
            backends = ConfiguredBackends(self.config, self.registry)
            staged_replay = None
            if replay is not None:
                require_one(replay, [each.candidates[0].store for each in requests])
            if replay is not None or changelog is not None:
                staged_replay = StagedReplay(
                    replay,
                    ReplayPorts(
                        changelog=required(changelog),
                        layout=layout,
                        backends=backends,
                        overrides=overrides,
                        clock=clock,
                        listener=listener,
                    ),
                )
            proof = None
            if changelog is not None:
                proof = Proof(
                    changelog,
                    self.repository.catalog,
                    partial(configured_layout, self.config, self.registry),
                    clock,
                    overrides=overrides,
                    goal=replay,
                )
            ports = RestorePorts(
                repository=self.repository,
                layout=layout,
                backends=backends,
                check=None if proof is None else proof.check,
                clock=self.clock,
                listener=listener,
                replay=staged_replay,
                remember=self._remembering(listener),
            )
            if dry_run:
                return plan_restore(requests, place, ports, options)
            return restore(requests, place, ports, options)

    def _requests(
        self,
        refs: Iterable[str],
        application: str | None,
        task: str | None,
        store: str | None,
        *,
        missing_ok: bool,
    ) -> builtins.list[Request]:
        named = [*refs]
        if named and (application or task or store):
            raise ConfigError("references and --application, --task or --store exclude each other")
        if named:
            return requests_for_refs(self.repository.catalog, named, missing_ok=missing_ok)
        application = application or self.config.state.application
        if application is None:
            raise ConfigError(
                "nothing was named to restore", hint="name snapshots, or an --application"
            )
        listing = self.list(application=application, task=task, store=store)
        requests = requests_for_stores(listing.snapshots)
        if not requests and not missing_ok:
            chosen = "/".join(part for part in (application, task, store) if part)
            raise SnapshotNotFoundError(
                f"there is no snapshot of {chosen}",
                hint="see what there is: snapstore list",
                application=application,
            )
        return requests

    def _layout_of(self, requests: Sequence[Request]) -> str | None:
        """Return the layout that the snapshots were found by; None when every entry is damaged."""
        for listed in (each for request in requests for each in request.candidates):
            try:
                return self.load(listed).description.layout
            except IntegrityError:
                continue
        return None

    def _remembering(self, listener: Listener) -> Remember:
        lineage = lineage_of(self.config)

        def remember(task_dir: Path, stores: Mapping[str, tuple[Position, ...]]) -> None:
            try:
                lineage.remember(task_dir, stores)
            except OSError as error:
                listener(
                    Noted(
                        message=f"where {task_dir} came from could not be noted, so that a replay"
                        f" will need --allow-unchecked-changelog: {error.strerror}"
                    )
                )

        return remember


def required(changelog: Changelog | None) -> Changelog:
    """Raises ConfigError where Kafka is not configured."""
    if changelog is None:
        raise ConfigError(
            "records can be read only from Kafka, which is not configured",
            hint="write kafka.bootstrap, or set SNAPSTORE_KAFKA_BOOTSTRAP",
            key="kafka.bootstrap",
        )
    return changelog

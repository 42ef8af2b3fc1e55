"""The verbs that tell what the snapshots are worth: status and drill."""

import builtins
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec

from snapstore.client.own_cache import scratch_folder
from snapstore.client.parts import (
    ConfiguredBackends,
    configured_changelog,
    configured_layout,
    state_dir,
)
from snapstore.client.requests import requests_for_refs, requests_for_stores
from snapstore.client.upkeep import UpkeepVerbs
from snapstore.errors import (
    ConfigError,
    SnapshotNotFoundError,
    StoreNotFoundError,
)
from snapstore.model.freshness import FreshnessReport, Thresholds
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Noted, nobody
from snapstore.model.units import few
from snapstore.operations.clocks import later_clock
from snapstore.operations.drill import drill
from snapstore.operations.drill_rates import measured, rates_of, read_rates, write_rates
from snapstore.operations.drill_report import DrillReport
from snapstore.operations.drill_store import DrillOptions, DrillPorts
from snapstore.operations.restore_choice import Request
from snapstore.operations.status import StatusOptions, status
from snapstore.ports import Listener


class ProofVerbs(UpkeepVerbs):
    """Verbs that hold the snapshots against their changelogs, and change neither."""

    def status(
        self,
        directory: Path | str | None = None,
        *,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        max_age: timedelta | None = None,
        max_lag_records: int | None = None,
        download_bytes_per_second: float | None = None,
        replay_records_per_second: float | None = None,
        safe_trim: bool = False,
    ) -> FreshnessReport:
        """Say of every store how fresh its snapshots are and whether one can be restored now.

        Stores without a snapshot are named where there is a state directory to look at. Without
        Kafka only ages are told. Rates that are not given are those that the last drill on this
        host has measured. Look at ``report.over`` and ``report.unknown``. Raises
        SnapshotNotFoundError where there is nothing to tell of, ConfigError for ``max_lag_records``
        or ``safe_trim`` without Kafka, UnavailableError.
        """
        if self.config.kafka.bootstrap is None and (safe_trim or max_lag_records is not None):
            raise ConfigError(
                "without Kafka nobody knows how far a snapshot is behind",
                hint="write kafka.bootstrap, or ask for ages only",
                key="kafka.bootstrap",
            )
        notes: builtins.list[str] = []
        stores = self._known_stores(directory, application, task, store, notes)
        options = StatusOptions(
            thresholds=Thresholds(max_age=max_age, max_lag_records=max_lag_records),
            rates=rates_of(
                read_rates(self._rates_file),
                download_bytes_per_second=download_bytes_per_second,
                replay_records_per_second=replay_records_per_second,
            ),
            safe_trim=safe_trim,
            parallel=self.config.transfer.parallel,
        )
        with configured_changelog(self.config, self.registry) as changelog:
            layouts = partial(configured_layout, self.config, self.registry)
            clock = later_clock(self.repository.storage, self.clock)
            report = status(stores, self.repository, changelog, layouts, clock, options)
        return msgspec.structs.replace(report, notes=tuple(notes))

    def drill(
        self,
        refs: Iterable[str] = (),
        *,
        application: str | None = None,
        task: str | None = None,
        store: str | None = None,
        sample: int | None = None,
        seed: int = 0,
        scratch: Path | None = None,
        listener: Listener = nobody,
    ) -> DrillReport:
        """Restore stores into a scratch folder and hold them against rebuilds from the changelog.

        Those named, or all; of these ``sample``, drawn with ``seed``. What is wrong with a store is
        in the report: look at ``report.worst``. How fast it went is remembered for ``status``.
        Raises SnapshotNotFoundError, ConfigError without Kafka.
        """
        requests = self._drill_requests(refs, application, task, store)
        with configured_changelog(self.config, self.registry) as changelog:
            if changelog is None:
                raise ConfigError(
                    "a drill needs the changelogs, and Kafka is not configured",
                    hint="write kafka.bootstrap; without it: snapstore verify --read-data --open",
                    key="kafka.bootstrap",
                )
            report = drill(
                requests,
                DrillPorts(
                    repository=self.repository,
                    layouts=partial(configured_layout, self.config, self.registry),
                    backends=ConfiguredBackends(self.config, self.registry),
                    changelog=changelog,
                    clock=later_clock(self.repository.storage, self.clock),
                    listener=listener,
                ),
                DrillOptions(
                    sample=sample,
                    seed=seed,
                    scratch=scratch or scratch_folder(self.config),
                    parallel=self.config.transfer.parallel,
                    limit_bytes_per_second=self.config.transfer.limit_rate,
                ),
            )
        try:
            write_rates(self._rates_file, measured(report.stores, self.clock()))
        except OSError as error:
            reason = error.strerror or str(error)
            listener(Noted(message=f"how fast it went could not be remembered: {reason}"))
        return report

    def _drill_requests(
        self,
        refs: Iterable[str],
        application: str | None,
        task: str | None,
        store: str | None,
    ) -> builtins.list[Request]:
        named = [*refs]
        if named and (application or task or store):
            raise ConfigError("references and --application, --task or --store exclude each other")
        if named:
            return requests_for_refs(self.repository.catalog, named, missing_ok=False)
        application = application or self.config.state.application
        listing = self.list(application=application, task=task, store=store)
        requests = requests_for_stores(listing.snapshots)
        if not requests:
            raise _no_snapshot(application, task, store)
        return requests

    def _known_stores(
        self,
        directory: Path | str | None,
        application: str | None,
        task: str | None,
        store: str | None,
        notes: builtins.list[str],
    ) -> Mapping[StoreId, builtins.list[ListedSnapshot]]:
        """Return the stores that the catalog lists and those on disk, with their snapshots."""
        application = application or self.config.state.application
        listing = self.list(application=application, task=task, store=store)
        if listing.foreign:
            notes.append(f"not a catalog entry, passed over: {few(listing.foreign)}")
        stores: dict[StoreId, builtins.list[ListedSnapshot]] = {}
        for each in self._stores_on_disk(directory, application, notes):
            if (task is None or each.task == task) and (store is None or each.store == store):
                stores[each] = []
        for item in listing.snapshots:
            stores.setdefault(item.store, []).append(item)
        if not stores:
            raise _no_snapshot(application, task, store)
        return stores

    def _stores_on_disk(
        self, directory: Path | str | None, application: str | None, notes: builtins.list[str]
    ) -> builtins.list[StoreId]:
        """Look for stores where a state directory is named; one of the file may be elsewhere."""
        if directory is None and self.config.state.dir is None:
            return []
        layout = configured_layout(self.config, self.registry)
        place = state_dir(self.config, directory)
        try:
            found = layout.discover(place, application)
        except StoreNotFoundError:
            if directory is not None:
                raise
            notes.append(f"{place} is not on this host: stores without a snapshot are not named")
            return []
        notes += [f"could not look: {each.error.message}" for each in found.unread]
        named = [each.store for each in found.unread if not each.whole]
        return [*(location.store for location in found.locations), *named]

    @property
    def _rates_file(self) -> Path:
        return self._own_cache / "rates.json"


def _no_snapshot(
    application: str | None, task: str | None, store: str | None
) -> SnapshotNotFoundError:
    chosen = "/".join(part for part in (application, task, store) if part)
    return SnapshotNotFoundError(
        f"there is no snapshot of {chosen}" if chosen else "there is no snapshot",
        hint="take one: snapstore snapshot",
    )

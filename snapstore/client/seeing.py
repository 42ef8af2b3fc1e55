"""What a run sees of its stores from outside, for itself and for the next one."""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from snapstore.client.answering import fingerprints_of, is_recorded, place_of, settings_of
from snapstore.client.own_cache import last_runs
from snapstore.config import Config
from snapstore.errors import CaptureError
from snapstore.model.identity import StoreId
from snapstore.model.report import Noted
from snapstore.operations.fingerprint import Fingerprint
from snapstore.operations.last_runs import LastRun, SeenStore
from snapstore.operations.snapshot_plan import SnapshotPlan
from snapstore.operations.snapshot_report import SnapshotReport
from snapstore.operations.unchanged import as_before, seen_stores
from snapstore.ports import Layout, Listener
from snapstore.repository import Repository


class Seeing:
    """One look at the stores of a plan, to be made before any of them is opened.

    ``place`` is the state directory; without one, and with Kafka, nothing is looked at or kept.
    """

    def __init__(
        self,
        config: Config,
        repository: Repository,
        plan: SnapshotPlan,
        layout: Layout,
        place: Path | None,
    ) -> None:
        self._repository = repository
        self._plan = plan
        self._layout = layout
        self._runs = last_runs(config)
        self._stamp = self._runs.stamp(repository.marker.id)
        self._fingerprints: Mapping[StoreId, Fingerprint] = {}
        if place is not None and is_recorded(config, layout.name):
            self._fingerprints = fingerprints_of(plan.locations, layout)
            self._place = place_of(config, place, layout.name)
            self._settings = settings_of(config, os.environ)

    def as_before(self) -> Mapping[StoreId, SeenStore]:
        """Return the stores that look as they did when this repository was last asked."""
        if not self._fingerprints:
            return {}
        run = self._runs.load(self._place)
        if run is None or run.repository != self._repository.marker.id:
            return {}
        try:
            in_use = {one.store for one in self._layout.which_in_use(self._plan.locations)}
        except CaptureError:
            # Of which store that cannot be told, the way that reads the files will say.
            return {}
        return as_before(run, self._settings, self._fingerprints, in_use)

    def keep(self, report: SnapshotReport, began_at: datetime, listener: Listener) -> None:
        """Keep what was seen for the next run; ``began_at`` is a time before the catalog was read.

        Where it cannot be written the listener is told: the next run then looks at everything.
        """
        stores = dict(seen_stores(report.outcomes, self._fingerprints, began_at))
        if not stores:
            return
        run = LastRun(
            settings=self._settings,
            repository=self._repository.marker.id,
            url=self._repository.storage.url,
            stores=stores,
        )
        try:
            self._runs.save(self._place, run, stamp=self._stamp)
        except OSError as error:
            listener(Noted(message=f"what was seen could not be kept for the next run: {error}"))

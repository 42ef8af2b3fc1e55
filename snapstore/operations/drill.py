"""Prove that snapshots bring their stores back: restore, replay, rebuild, and compare.

Each store is restored into a scratch folder and replayed to the end of its changelog as it is just
then; another copy is built from the changelog alone, to the same offset; and the two must hold the
same. Nothing else is written anywhere.
"""

import random
import time
from collections.abc import Sequence

import msgspec

from snapstore.errors import (
    CaptureError,
    ConfigError,
    IntegrityError,
    NotReplayableError,
    PluginError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
    SourceDamagedError,
    StoreUnsupportedError,
    UnavailableError,
)
from snapstore.model.identity import StoreId
from snapstore.model.report import StoreFinished
from snapstore.operations.drill_report import DrilledStore, DrillReport, Outcome
from snapstore.operations.drill_store import DrillOptions, DrillPorts, StoreDrill
from snapstore.operations.proof import Proof
from snapstore.operations.restore_choice import Chooser, Request
from snapstore.operations.restore_plan import Wanted
from snapstore.ports import Layout


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
        self._layouts: dict[str, Layout] = {}
        self._chooser = Chooser(
            ports.repository,
            check=Proof(
                ports.changelog, ports.repository.catalog, ports.layouts, ports.clock
            ).check,
            allow_unchecked_changelog=False,
            clock=ports.clock,
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
        if not wanted.snapshot.description.positions:
            reason = "it has no changelog that it could be rebuilt from"
            return msgspec.structs.replace(drilled, reason=reason)
        name = wanted.snapshot.description.layout
        layout = self._layouts.setdefault(name, self._ports.layouts(name))
        return StoreDrill(wanted, layout, self._ports, self._options).prove(drilled)


def outcome_of(error: SnapstoreError) -> Outcome:
    """Return what an error says of the snapshot."""
    match error:
        case IntegrityError() | SourceDamagedError():
            return "damaged"
        case NotReplayableError() | PluginError() | StoreUnsupportedError():
            return "skipped"
        case UnavailableError() | CaptureError() | SnapshotNotFoundError():
            return "unavailable"
        case RefusedError():
            return "refused"
        case _:
            raise error

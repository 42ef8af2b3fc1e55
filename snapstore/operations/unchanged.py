"""Stores that look as they did in the last run: nothing of them is opened."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from snapstore.errors import SnapstoreError
from snapstore.model.identity import StoreId
from snapstore.model.report import StoreFinished
from snapstore.model.store import StoreLocation
from snapstore.operations.fingerprint import Fingerprint
from snapstore.operations.last_runs import LastRun, SeenStore
from snapstore.operations.snapshot_report import StoreOutcome, describe
from snapstore.ports import Listener

if TYPE_CHECKING:
    from snapstore.repository import BlobWriter, Repository


def as_before(
    run: LastRun,
    settings: str,
    fingerprints: Mapping[StoreId, Fingerprint],
    in_use: Collection[StoreId],
) -> dict[StoreId, SeenStore]:
    """Return the stores of which all is as the last run saw it.

    Their applications run, or do not, as then: some files are taken only from one that does not.
    """
    if run.settings != settings:
        return {}
    known = {store: run.stores.get(str(store)) for store in fingerprints}
    return {
        store: seen
        for store, seen in known.items()
        if seen is not None
        and seen.fingerprint == fingerprints[store].digest
        and seen.running == (store in in_use)
    }


def listed_lately(seen: SeenStore, now: datetime, within: timedelta) -> bool:
    """Whether the repository was asked no longer ago than that; a clock that went back says no."""
    return timedelta(0) <= now - seen.listed_at <= within


def not_asked(store: StoreId, seen: SeenStore) -> StoreOutcome:
    """Return the outcome of a store for which the repository was not asked; it says so."""
    at = seen.listed_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    remark = f"not asked again: the repository listed its snapshot at {at}"
    outcome = _outcome(store, seen, (*seen.remarks, remark), seconds=0.0)
    return msgspec.structs.replace(outcome, listed_at=seen.listed_at)


def seen_stores(
    outcomes: Iterable[StoreOutcome],
    fingerprints: Mapping[StoreId, Fingerprint],
    began_at: datetime,
) -> Iterator[tuple[str, SeenStore]]:
    """Yield what a run that began then saw, for the next one; ``fingerprints`` are older.

    A store that changed so lately that a further change might not show is left out.
    """
    # Imported here: an answer from the record needs no repository.
    from snapstore.repository.catalog import listed_of

    for outcome in outcomes:
        seen_now = fingerprints.get(outcome.store)
        if seen_now is None or not seen_now.is_settled(int(began_at.timestamp() * 1e9)):
            continue
        listed = outcome.same_as if outcome.snapshot is None else listed_of(outcome.snapshot)
        if listed is None or outcome.source not in ("closed", "running"):
            continue
        yield (
            str(outcome.store),
            SeenStore(
                fingerprint=seen_now.digest,
                running=outcome.source == "running",
                listed=listed,
                listed_at=began_at,
                files=outcome.new_files + outcome.reused_files,
                bytes=outcome.new_bytes + outcome.reused_bytes,
                remarks=outcome.remarks,
            ),
        )


def is_held(repository: "Repository", blobs: "BlobWriter", seen: SeenStore) -> bool:
    """Whether a snapshot is still the newest of its store, with all its bytes in place."""
    if repository.catalog.newest_of(seen.listed.store) != seen.listed:
        return False
    files = repository.manifests.load(seen.listed.id).files
    return blobs.holds({file.blob: file.size for file in files if file.blob is not None})


class Confirming:
    """Takes stores that look as before by asking the repository alone; safe for several threads.

    ``holds`` is ``is_held`` of that repository.
    """

    def __init__(
        self,
        seen: Mapping[StoreId, SeenStore],
        holds: Callable[[SeenStore], bool],
        listener: Listener,
    ) -> None:
        self._seen = seen
        self._holds = holds
        self._listener = listener

    def take(self, location: StoreLocation) -> StoreOutcome | None:
        """Return the outcome; None where the store must be looked into."""
        began = time.monotonic()
        seen = self._seen.get(location.store)
        if seen is None or not self._is_held(seen):
            return None
        outcome = _outcome(location.store, seen, seen.remarks, seconds=time.monotonic() - began)
        self._listener(StoreFinished(store=location.store, outcome=describe(outcome), ok=True))
        return outcome

    def _is_held(self, seen: SeenStore) -> bool:
        try:
            return self._holds(seen)
        except SnapstoreError:
            # Whatever it is, taking the store will say so, after some more tries.
            return False


def _outcome(
    store: StoreId, seen: SeenStore, remarks: tuple[str, ...], *, seconds: float
) -> StoreOutcome:
    return StoreOutcome(
        store=store,
        status="unchanged",
        seconds=seconds,
        attempts=0,
        same_content=True,
        same_as=seen.listed,
        source="running" if seen.running else "closed",
        reused_files=seen.files,
        reused_bytes=seen.bytes,
        remarks=remarks,
    )

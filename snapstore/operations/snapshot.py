"""Take snapshots of several stores at once."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from snapstore.model.folder_size import size_on_disk
from snapstore.model.report import Event, Noted, Planned
from snapstore.model.store import StoreLocation
from snapstore.model.units import count
from snapstore.model.unread import Unread
from snapstore.operations.deadline import Deadline, Monotonic
from snapstore.operations.discover import backend_of
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.snapshot_fence import UNFENCED, Fencer
from snapstore.operations.snapshot_plan import SnapshotPlan
from snapstore.operations.snapshot_report import SnapshotReport, StoreOutcome
from snapstore.operations.snapshot_store import RunFacts, StoreSnapshotter
from snapstore.operations.stopping import Stop, result_of
from snapstore.operations.upload import Uploader
from snapstore.ports import Changelog, Clock, Layout, Listener, StoreBackend
from snapstore.repository import HashCache, Repository

if TYPE_CHECKING:
    from snapstore.operations.capture_choice import Chooser


class SnapshotOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a run works.

    ``parallel_stores`` are captured at once and ``transfers`` files are sent at once, over all
    stores. ``skip_unchanged``: a store that holds what its newest snapshot holds, at the same
    offsets, and with the tags of the run, gets no new one. ``attempts`` are made at a store that
    keeps changing.
    """

    parallel_stores: int = 4
    transfers: int = 8
    limit_rate_bytes_per_s: int | None = None
    skip_unchanged: bool = False
    attempts: int = 5


def take_snapshots(
    plan: SnapshotPlan,
    repository: Repository,
    facts: RunFacts,
    options: SnapshotOptions,
    *,
    layout: Layout,
    backends: Mapping[str, StoreBackend],
    clock: Clock,
    listener: Listener,
    cache: HashCache | None,
    changelog: Changelog | None = None,
    capture: "Chooser | None" = None,
    monotonic: Monotonic = time.monotonic,
) -> SnapshotReport:
    """Carry a plan out. One store that fails stops no other; its outcome carries the error.

    An interrupt (KeyboardInterrupt, or any error that is no SnapstoreError) stops all threads and
    is raised; what was published before stays, nothing is half-published. ``listener`` is called
    from several threads, one at a time. ``changelog`` is None where Kafka is not configured: the
    snapshots then have no fence. ``capture`` chooses where each store is taken from, None its disk.
    Raises what opening the run's list of condemned blobs raises.
    """
    stop = Stop()
    tell = _one_at_a_time(listener)
    limit = (
        RateLimit(options.limit_rate_bytes_per_s, sleep=stop.sleep)
        if options.limit_rate_bytes_per_s
        else None
    )
    tell(Planned(sizes={str(each.store): size_on_disk(each.path) for each in plan.locations}))
    deadline = Deadline(clock, repository.marker.longest_run, monotonic=monotonic)
    blobs = repository.begin_run(facts.run)
    with (
        ThreadPoolExecutor(options.transfers, "transfer") as transfers,
        ThreadPoolExecutor(options.parallel_stores, "store") as stores,
    ):
        snapshotter = StoreSnapshotter(
            repository,
            Uploader(transfers, blobs, cache=cache, limit=limit, clock=clock),
            layout,
            facts,
            fencer=None if changelog is None else Fencer(changelog, repository, layout, clock),
            skip_unchanged=options.skip_unchanged,
            attempts=options.attempts,
            clock=clock,
            listener=tell,
            stop=stop,
            deadline=deadline,
        )
        take: Callable[[StoreLocation, StoreBackend], StoreOutcome] = snapshotter.take
        if capture is not None:
            take = partial(capture.take, snapshotter)
        chosen = [(location, backend_of(location, backends)) for location in plan.locations]
        taken: list[Future[StoreOutcome]] = []
        try:
            # An interrupt can come as soon as the first store is handed over.
            taken.extend(stores.submit(take, location, backend) for location, backend in chosen)
            outcomes = tuple(result_of(future) for future in taken)
        except BaseException:
            stop.order()
            for future in taken:
                future.cancel()
            raise
    _save(cache, tell)
    outcomes = _in_order([*outcomes, *map(_missed, plan.unread)])
    notes = plan.notes if changelog is not None else (*plan.notes, *_without_kafka(outcomes))
    return SnapshotReport(run=facts.run, outcomes=outcomes, notes=notes)


def _missed(unread: Unread) -> StoreOutcome:
    return StoreOutcome(
        store=unread.store, status="failed", seconds=0.0, attempts=0, error=unread.error
    )


def _in_order(outcomes: Sequence[StoreOutcome]) -> tuple[StoreOutcome, ...]:
    return tuple(sorted(outcomes, key=lambda outcome: outcome.store.order))


def _without_kafka(outcomes: Sequence[StoreOutcome]) -> Iterator[str]:
    taken = [each.snapshot.description for each in outcomes if each.snapshot is not None]
    if any(description.positions for description in taken):
        yield UNFENCED
    unknown = [each for each in taken if each.status == "open" and each.guarantee is None]
    if unknown:
        yield (
            f"{count(len(unknown), 'store')} not closed, and without Kafka nothing tells the "
            "application's processing.guarantee: no replay goes on from such a snapshot unless "
            "state.guarantee says at_least_once"
        )


def _one_at_a_time(listener: Listener) -> Listener:
    lock = threading.Lock()

    def tell(event: Event) -> None:
        with lock:
            listener(event)

    return tell


def _save(cache: HashCache | None, tell: Listener) -> None:
    if cache is None:
        return
    try:
        cache.save()
    except OSError as error:
        tell(Noted(message=f"the hashes could not be kept for the next run: {error}"))

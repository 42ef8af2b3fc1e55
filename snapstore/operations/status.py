"""Say how fresh the snapshots of every store are, and whether one could be restored now."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal

import msgspec

from snapstore.errors import (
    CredentialsError,
    IntegrityError,
    KafkaError,
    RefusedError,
    SnapshotNotFoundError,
    SnapstoreError,
)
from snapstore.model.freshness import (
    FreshnessReport,
    PartitionFreshness,
    PassedOver,
    Rates,
    Standing,
    StoreFreshness,
    Thresholds,
    crossed,
    restore_seconds,
)
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.lifetime import advise, usual_interval
from snapstore.model.listing import ListedSnapshot
from snapstore.model.plausible import require_plausible
from snapstore.model.report import nobody
from snapstore.model.snapshot import Snapshot
from snapstore.operations.proof import Layouts
from snapstore.operations.restore_choice import INCOMPLETE, NOT_COMPLETE
from snapstore.operations.status_log import NotUsableError, SeenLogs, SeenPosition
from snapstore.operations.stopping import in_parallel
from snapstore.operations.verify import VerifyOptions, verify
from snapstore.ports import Changelog, Clock, StoreBackend
from snapstore.repository import Repository

DAMAGED = "integrity"

_NO_KAFKA = (
    "Kafka is not configured: whether it could still be used, how far it is behind and how long"
    " it stays usable is not known"
)


class StatusOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for. ``safe_trim`` also proves the oldest snapshots against their changelogs."""

    thresholds: Thresholds = Thresholds()
    rates: Rates | None = None
    safe_trim: bool = False
    parallel: int = 8


def status(
    stores: Mapping[StoreId, Sequence[ListedSnapshot]],
    repository: Repository,
    changelog: Changelog | None,
    layouts: Layouts,
    clock: Clock,
    options: StatusOptions,
) -> FreshnessReport:
    """Return the state of every store; its snapshots come newest first, and may be none.

    Only the presence and size of what a snapshot needs is checked, not its bytes. That a changelog
    does not answer is told with the store; that the repository cannot be read is an error:
    UnavailableError.
    """
    soundness = _Soundness(repository, options.parallel)
    soundness.look_at([edge for items in stores.values() for edge in _edges(items)])
    logs = None if changelog is None else SeenLogs(changelog, repository.catalog, layouts, clock)
    survey = _Survey(repository, soundness, logs, clock, options)
    found = in_parallel(
        lambda item: survey.look_at(*item), stores.items(), parallel=options.parallel
    )
    return FreshnessReport(
        stores=tuple(sorted(found, key=lambda each: each.store.order)), rates=options.rates
    )


def _edges(items: Sequence[ListedSnapshot]) -> list[ListedSnapshot]:
    """The newest and the oldest snapshot: those that are asked for most."""
    return [items[0], items[-1]] if items else []


class _Soundness:
    """Remembers which snapshots lack something of what they need."""

    def __init__(self, repository: Repository, parallel: int) -> None:
        self._repository = repository
        self._parallel = parallel
        self._damage: dict[str, str | None] = {}
        self._turn = threading.Lock()

    def look_at(self, listed: Iterable[ListedSnapshot]) -> None:
        unseen = {item.id: item for item in listed if item.id not in self._damage}
        if not unseen:
            return
        report = verify(
            self._repository,
            [*unseen.values()],
            backends=_NO_BACKENDS,
            listener=nobody,
            options=VerifyOptions(parallel=self._parallel),
        )
        reasons = {
            snapshot_id: damage.reason
            for damage in report.damage
            for snapshot_id in damage.snapshots
        }
        self._damage.update({name: reasons.get(name) for name in unseen})

    def damage(self, listed: ListedSnapshot) -> str | None:
        """Return what is wrong with a snapshot; None for one that is whole."""
        with self._turn:
            self.look_at([listed])
            return self._damage[listed.id]


_NO_BACKENDS: Mapping[str, StoreBackend] = {}


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that a restore would take, with what its changelogs show."""

    listed: ListedSnapshot
    snapshot: Snapshot
    standing: Literal["usable", "unchecked", "unknown"]
    seen: tuple[SeenPosition, ...] = ()
    problem: SnapstoreError | None = None


class _Survey:
    """Looks at one store after the other; safe for several threads."""

    def __init__(
        self,
        repository: Repository,
        soundness: _Soundness,
        logs: SeenLogs | None,
        clock: Clock,
        options: StatusOptions,
    ) -> None:
        self._repository = repository
        self._soundness = soundness
        self._logs = logs
        self._clock = clock
        self._options = options

    def look_at(self, store: StoreId, items: Sequence[ListedSnapshot]) -> StoreFreshness:
        passed: list[PassedOver] = []
        advice: list[str] = []
        interval = usual_interval([item.captured_at for item in items])
        found = self._choose(items, passed, advice, interval)
        if found is None:
            return self._without(store, items, passed, advice)
        age = self._clock() - found.listed.captured_at
        if age < timedelta():
            advice.append("its capture time lies ahead of this clock: one of the two is wrong")
            age = timedelta()
        standing: Standing = found.standing
        if standing == "usable" and passed:
            standing = "older"
        partitions = _partitions(found)
        lag = lag_bytes = None
        if found.standing == "usable":
            lag = sum(each.lag_records or 0 for each in partitions)
            lag_bytes = sum(each.lag_bytes or 0 for each in partitions)
        seconds = restore_seconds(found.snapshot.size_bytes, lag, self._options.rates)
        advice += [note for each in found.seen for note in each.plan.notes]
        limits = [(each.limit, each.state) for each in found.seen if each.limit is not None]
        advice += advise(limits, now=self._clock(), interval=interval, restore_seconds=seconds)
        return StoreFreshness(
            store=store,
            standing=standing,
            snapshots=len(items),
            newest=items[0],
            used=found.listed,
            age=age,
            size_bytes=found.snapshot.size_bytes,
            partitions=partitions,
            lag_records=lag,
            lag_bytes=lag_bytes,
            restore_seconds=seconds,
            reason=_reason(found),
            code=None if found.problem is None else found.problem.code,
            passed_over=tuple(passed),
            safe_trim_offsets=self._safe_trim(items),
            advice=tuple(dict.fromkeys(advice)),
            over=crossed(standing, age, lag, self._options.thresholds),
        )

    def _without(
        self,
        store: StoreId,
        items: Sequence[ListedSnapshot],
        passed: Sequence[PassedOver],
        advice: Sequence[str],
    ) -> StoreFreshness:
        standing: Standing = "unusable" if items else "none"
        return StoreFreshness(
            store=store,
            standing=standing,
            snapshots=len(items),
            newest=items[0] if items else None,
            reason=passed[0].reason if passed else "there is no snapshot of it",
            code=passed[0].code if passed else "snapshot_not_found",
            passed_over=tuple(passed),
            safe_trim_offsets=self._safe_trim(items),
            advice=tuple(dict.fromkeys(advice)),
            over=crossed(standing, None, None, self._options.thresholds),
        )

    def _choose(
        self,
        items: Sequence[ListedSnapshot],
        passed: list[PassedOver],
        advice: list[str],
        interval: timedelta | None,
    ) -> _Found | None:
        """Return the newest snapshot that can be used; say in ``passed`` why newer ones cannot."""
        incomplete: tuple[_Found, int] | None = None
        for listed in items:
            damage = self._soundness.damage(listed)
            if damage is not None:
                passed.append(PassedOver(snapshot_id=listed.id, code=DAMAGED, reason=damage))
                continue
            try:
                snapshot = self._repository.catalog.load(listed)
                require_plausible(listed, snapshot.description, now=self._clock())
                found = self._prove(listed, snapshot, interval)
            except NotUsableError as refusal:
                passed.append(_passed(listed, refusal.error))
                advice += refusal.advice
            except IntegrityError as error:
                passed.append(_passed(listed, error))
            except SnapshotNotFoundError:
                # It was taken out of the catalog meanwhile.
                continue
            else:
                if found.snapshot.description.complete or found.standing == "unknown":
                    return found
                incomplete = incomplete or (found, len(passed))
                passed.append(
                    PassedOver(snapshot_id=listed.id, code=INCOMPLETE, reason=NOT_COMPLETE)
                )
        if incomplete is None:
            return None
        found, newer = incomplete
        del passed[newer:]
        advice.append(f"the snapshot that is used is not complete: {NOT_COMPLETE}")
        return found

    def _prove(
        self, listed: ListedSnapshot, snapshot: Snapshot, interval: timedelta | None
    ) -> _Found:
        """Ask the changelogs of a snapshot; raises NotUsableError."""
        if self._logs is None:
            standing: Literal["usable", "unchecked"]
            standing = "unchecked" if listed.changelogs else "usable"
            return _Found(listed=listed, snapshot=snapshot, standing=standing)
        try:
            seen = self._logs.look_at(snapshot, interval)
        except (KafkaError, CredentialsError) as error:
            return _Found(listed=listed, snapshot=snapshot, standing="unknown", problem=error)
        return _Found(listed=listed, snapshot=snapshot, standing="usable", seen=seen)

    def _safe_trim(self, items: Sequence[ListedSnapshot]) -> dict[ChangelogPartition, int] | None:
        """Return the applied offsets of the oldest snapshot that could still be used.

        None where nothing proves one. A store of several partitions takes the least of each.
        """
        if self._logs is None or not self._options.safe_trim:
            return None
        least: dict[ChangelogPartition, int] = {}
        for listed in reversed(items):
            if self._soundness.damage(listed) is not None:
                continue
            try:
                snapshot = self._repository.catalog.load(listed)
                self._logs.prove(snapshot)
            except (RefusedError, SnapshotNotFoundError):
                continue
            except (KafkaError, CredentialsError):
                return None
            for each in snapshot.description.positions:
                at = each.position
                least[at.changelog] = min(
                    at.applied_offset, least.get(at.changelog, at.applied_offset)
                )
            if listed.changelogs <= 1:
                break
        return least or None


def _passed(listed: ListedSnapshot, error: SnapstoreError) -> PassedOver:
    return PassedOver(snapshot_id=listed.id, code=error.code, reason=error.message)


def _partitions(found: _Found) -> tuple[PartitionFreshness, ...]:
    if found.seen:
        return tuple(
            PartitionFreshness(
                changelog=each.state.changelog,
                applied_offset=each.applied_offset,
                log_start=each.state.log_start,
                log_end=each.state.log_end,
                lag_records=each.plan.behind,
                lag_bytes=each.lag_bytes,
                limit=each.limit,
            )
            for each in found.seen
        )
    return tuple(
        PartitionFreshness(
            changelog=each.position.changelog, applied_offset=each.position.applied_offset
        )
        for each in found.snapshot.description.positions
    )


def _reason(found: _Found) -> str | None:
    if found.problem is not None:
        return found.problem.message
    return _NO_KAFKA if found.standing == "unchecked" else None

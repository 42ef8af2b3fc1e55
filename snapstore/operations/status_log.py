"""Prove many snapshots against their changelogs, asking for each partition once."""

import threading
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from snapstore.errors import (
    ChangelogTruncatedError,
    CredentialsError,
    KafkaError,
    RefusedError,
    TombstoneHorizonError,
)
from snapstore.model.changelog import ChangelogRecord, PartitionState
from snapstore.model.identity import ChangelogPartition
from snapstore.model.lifetime import (
    Limit,
    advise_on_horizon,
    advise_on_truncation,
    limit_of,
    retention,
)
from snapstore.model.resume import ResumePlan
from snapstore.model.snapshot import Position, Snapshot
from snapstore.operations.proof import Layouts, Proof
from snapstore.operations.replay_plan import ReplayGoal
from snapstore.ports import Changelog, Clock
from snapstore.repository import Catalog

_SAMPLED_OFFSETS = 500


class SeenPosition(msgspec.Struct, frozen=True, kw_only=True):
    """One position of a snapshot that can be used, and what its changelog shows.

    ``lag_bytes`` are the keys, values and headers after it, estimated from the first of them.
    """

    applied_offset: int
    lag_bytes: int
    plan: ResumePlan
    state: PartitionState
    limit: Limit | None


class NotUsableError(Exception):
    """A snapshot must not be used: why, and what would have kept it usable."""

    def __init__(self, error: RefusedError, advice: Sequence[str]) -> None:
        super().__init__(error.message)
        self.error = error
        self.advice = tuple(advice)


class SeenLogs:
    """Describes each partition once. Once the brokers have failed to answer, and never did, the
    rest is not asked for: every question would wait as long. Safe for several threads.
    """

    def __init__(
        self, changelog: Changelog, catalog: Catalog, layouts: Layouts, clock: Clock
    ) -> None:
        self._changelog = changelog
        self._clock = clock
        self._proof = Proof(changelog, catalog, layouts, clock, inspect=self._state)
        self._replayable = Proof(
            changelog, catalog, layouts, clock, goal=ReplayGoal(), inspect=self._state
        )
        self._states: dict[ChangelogPartition, PartitionState] = {}
        self._turn = threading.Lock()
        self._failure: KafkaError | CredentialsError | None = None

    def look_at(self, snapshot: Snapshot, interval: timedelta | None) -> tuple[SeenPosition, ...]:
        """Return what is to be replayed after a snapshot; ``interval`` is that of its store.

        Raises NotUsableError where the application must not go on from it, KafkaError or
        CredentialsError where the changelog does not tell.
        """
        try:
            self._proof.require_committed(snapshot)
        except RefusedError as error:
            raise NotUsableError(error, ()) from error
        positions = snapshot.description.positions
        return tuple(self._seen(snapshot, each, interval) for each in positions)

    def prove(self, snapshot: Snapshot) -> None:
        """Raise RefusedError unless a replay could go on from the snapshot, maybe without a gap.

        Raises KafkaError or CredentialsError too.
        """
        self._replayable.check(snapshot)

    def _seen(self, snapshot: Snapshot, each: Position, interval: timedelta | None) -> SeenPosition:
        changelog = each.position.changelog
        state = None
        try:
            state = self._state(changelog)
            plan = self._proof.check_position(snapshot, each)
            beginning = self._beginning(plan)
        except RefusedError as error:
            advice = () if state is None else _advice(error, each, state, interval)
            raise NotUsableError(error, advice) from error
        first_ms = None if retention(state) is None else _first_timestamp_ms(each, plan, beginning)
        return SeenPosition(
            applied_offset=each.position.applied_offset,
            lag_bytes=_lag_bytes(plan, beginning),
            plan=plan,
            state=state,
            limit=limit_of(plan, state, first_ms),
        )

    def _state(self, changelog: ChangelogPartition) -> PartitionState:
        with self._turn:
            if changelog in self._states:
                return self._states[changelog]
            if self._failure is not None and not self._states:
                raise self._failure
        try:
            state = self._changelog.inspect(changelog, now=self._clock())
        except (KafkaError, CredentialsError) as error:
            with self._turn:
                self._failure = error
            raise
        with self._turn:
            return self._states.setdefault(changelog, state)

    def _beginning(self, plan: ResumePlan) -> list[ChangelogRecord]:
        """Return the records at the first offsets of the tail."""
        if not plan.offsets:
            return []
        stop = plan.start + min(plan.offsets, _SAMPLED_OFFSETS)
        with self._changelog.read(
            plan.changelog, plan.start, stop, leader_epoch=plan.leader_epoch
        ) as tail:
            return [record for batch in tail for record in batch]


def _first_timestamp_ms(
    each: Position, plan: ResumePlan, beginning: Sequence[ChangelogRecord]
) -> int | None:
    """Return the time of the first record after the snapshot, or of the last one before it."""
    if beginning and beginning[0].offset == plan.start:
        return beginning[0].timestamp_ms
    applied = None if each.fence is None else each.fence.applied
    return None if applied is None else applied.timestamp_ms


def _lag_bytes(plan: ResumePlan, beginning: Sequence[ChangelogRecord]) -> int:
    """Estimate it: the brokers do not tell how many bytes a range of offsets has."""
    sampled = min(plan.offsets, _SAMPLED_OFFSETS)
    return sum(map(_size, beginning)) * plan.offsets // sampled if sampled else 0


def _size(record: ChangelogRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _advice(
    error: RefusedError, each: Position, state: PartitionState, interval: timedelta | None
) -> tuple[str, ...]:
    if isinstance(error, TombstoneHorizonError):
        dated = each.fence is not None and each.fence.behind_since is not None
        advice = advise_on_horizon(state, dated=dated, interval=interval)
        return (advice,)
    if isinstance(error, ChangelogTruncatedError):
        return (advise_on_truncation(state, interval),)
    return ()

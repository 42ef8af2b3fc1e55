"""Bring one store forward by the records of its changelog.

The store lies in a folder that its application does not see: when the log turns out to be another
one, or too old, what was written is thrown away.
"""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from snapstore.errors import NotReplayableError
from snapstore.model.changelog import TailReport
from snapstore.model.identity import ChangelogPartition
from snapstore.model.report import Advanced, StoreStarted
from snapstore.model.resume import Overrides, ResumePlan, confirm_tail, require_same_topic
from snapstore.model.snapshot import Description, Position
from snapstore.model.store import StoreLocation
from snapstore.operations.fence import check_fence
from snapstore.operations.replay_input import CommittedInput
from snapstore.operations.replay_layout import require_replay_layout
from snapstore.operations.replay_plan import PlannedReplay, ReplayGoal, stop_at
from snapstore.operations.restore_names import check_note_name
from snapstore.operations.stage_files import FileWriter
from snapstore.operations.swap import Reached
from snapstore.ports import (
    Changelog,
    Clock,
    FamilyNote,
    FileNote,
    Layout,
    Listener,
    ReplaySubject,
    StoreBackend,
    StoreReplay,
    StoreView,
    WritableBackend,
)

_FILE_MODE = 0o640


class ReplayPorts(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay works with. ``reached`` is called at named points of the work."""

    changelog: Changelog
    layout: Layout
    backends: Mapping[str, StoreBackend]
    overrides: Overrides
    clock: Clock
    listener: Listener
    reached: Reached = lambda _: None


class ReplayedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """What was applied of one changelog partition: the offsets from ``start`` to before ``stop``.

    ``log_end`` is where the log ended afterwards. ``deadline`` is by when the application must
    have replayed the rest; None where there is no such time.
    """

    changelog: ChangelogPartition
    start: int
    stop: int
    records: int
    seconds: float
    log_end: int
    deadline: datetime | None = None

    @property
    def applied_offset(self) -> int:
        return self.stop - 1

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


def plan_replays(
    positions: Sequence[Position], ports: ReplayPorts, goal: ReplayGoal
) -> tuple[PlannedReplay, ...]:
    """Check every position against the log, and return what is to be read.

    Raises what ``check_fence`` and ``stop_at`` raise.
    """
    planned = []
    for each in positions:
        plan = check_fence(
            ports.changelog,
            each.position,
            each.fence,
            now=ports.clock(),
            overrides=ports.overrides,
            deletions_applied=goal.is_end,
        )
        stop = stop_at(ports.changelog, plan, goal)
        planned.append(PlannedReplay(position=each.position, plan=plan, stop=stop))
    return tuple(planned)


def writable(backends: Mapping[str, StoreBackend], name: str) -> WritableBackend:
    """Return a backend that can write; raises NotReplayableError where it cannot."""
    backend = backends[name]
    if not isinstance(backend, WritableBackend):
        raise NotReplayableError(
            f"the backend {name} cannot write into its stores",
            hint="let the application replay",
            backend=name,
        )
    return backend


def require_replayable(description: Description, ports: ReplayPorts) -> None:
    """Raise NotReplayableError for a store that cannot be replayed, whatever its files hold."""
    require_replay_layout(ports.layout).require_replayable(
        description.store, description.store_type
    )
    writable(ports.backends, description.backend)


def replay_store(
    location: StoreLocation,
    planned: Sequence[PlannedReplay],
    ports: ReplayPorts,
    *,
    template: StoreView | None = None,
) -> tuple[ReplayedPartition, ...]:
    """Apply the planned records to the store in ``location.task_dir``; data and offset together.

    ``template`` is another copy of the store, for one that is empty: it shows how to write it.
    When it ends, everything is durable but an offset that lies beside the files: see
    ``note_reached``. Raises NotReplayableError before anything is written, and the refusals of
    ``confirm_tail`` and ``require_same_topic`` and whatever reading raises afterwards: the folder
    must not be used then.
    """
    rules = require_replay_layout(ports.layout)
    backend = writable(ports.backends, location.backend)
    replayed = []
    with backend.open_writer(location.task_dir, location.root) as writer:
        for each in planned:
            state = ports.changelog.inspect(each.plan.changelog, now=ports.clock())
            subject = ReplaySubject(
                location=location,
                changelog=each.plan.changelog,
                position=each.position,
                state=state,
                committed=CommittedInput(ports.changelog, ports.clock, ports.listener),
                template=template,
            )
            replay = rules.open_replay(writer, subject)
            replayed.append(_replay(location, each, replay, ports))
    ports.reached("replayed")
    return tuple(replayed)


def note_reached(
    location: StoreLocation,
    description: Description,
    ports: ReplayPorts,
    files: FileWriter,
) -> None:
    """Note the offsets of ``description`` where the databases themselves do not keep them.

    To be called once the data is durable.
    """
    backend = writable(ports.backends, location.backend)
    with backend.open_view(location.task_dir, location.root) as view:
        notes = ports.layout.notes(location.task_dir, [description], [view])
    for note in notes:
        match note:
            case FileNote(name=name, content=bytes() as content):
                check_note_name(name)
                files.write(location.task_dir / name, content, _FILE_MODE)
            case FileNote(name=name):
                check_note_name(name)
                (location.task_dir / name).unlink(missing_ok=True)
            case FamilyNote(database=database, family=family, entries=entries):
                backend.write_entries(location.task_dir / database, family, entries)


def describe_location(
    location: StoreLocation, positions: Sequence[Position], now: datetime
) -> Description:
    """Return what a snapshot of that store would say of it."""
    return Description(
        store=location.store,
        layout=location.layout,
        backend=location.backend,
        store_type=location.store_type,
        generation=location.generation,
        root=location.root,
        databases=(),
        positions=tuple(positions),
        captured_at=now,
        source="closed",
        instance="",
        run="",
        writer="",
    )


def _replay(
    location: StoreLocation, planned: PlannedReplay, replay: StoreReplay, ports: ReplayPorts
) -> ReplayedPartition:
    plan, store = planned.bounded, location.store
    began = time.monotonic()
    ports.listener(StoreStarted(store=store, stage="replay", total=plan.offsets, unit="records"))
    reached, last_epoch = plan.start, None
    changelog = plan.changelog
    with ports.changelog.read(
        changelog, plan.start, plan.stop, leader_epoch=plan.leader_epoch
    ) as tail:
        for records in tail:
            _confirm(plan, tail.report, ports)
            stop = records[-1].offset + 1
            replay.apply(records, stop)
            ports.reached("batch applied")
            ports.listener(Advanced(store=store, stage="replay", amount=stop - reached))
            reached, last_epoch = stop, records[-1].leader_epoch
        report = tail.report
    confirm_tail(plan, report, ports.clock())
    if last_epoch is not None and reached > plan.start:
        ports.changelog.check_history(changelog, offset=reached, leader_epoch=last_epoch)
    state = ports.changelog.inspect(changelog, now=ports.clock())
    require_same_topic(plan, state)
    if plan.stop > 0:
        replay.apply((), plan.stop)
    ports.listener(Advanced(store=store, stage="replay", amount=plan.stop - reached))
    return ReplayedPartition(
        changelog=changelog,
        start=plan.start,
        stop=plan.stop,
        records=report.records,
        seconds=time.monotonic() - began,
        log_end=state.log_end,
        deadline=plan.deadline if plan.stop < state.log_end else None,
    )


def _confirm(plan: ResumePlan, so_far: TailReport, ports: ReplayPorts) -> None:
    """Refuse as soon as a gap shows that a deletion may be lost, or that time has run out."""
    if not so_far.gap_free:
        confirm_tail(msgspec.structs.replace(plan, stop=so_far.stop), so_far, ports.clock())

"""Look at a state directory and say what its application will do at the next start."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from snapstore.errors import (
    CaptureError,
    ChangelogGoneError,
    SnapstoreError,
    StoreChangedError,
    StoreNotFoundError,
    UnsafePathError,
)
from snapstore.model.conditions import conditions_of
from snapstore.model.guarantee import AUTO, by_logs
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.judge import judge_task
from snapstore.model.report import StoreFinished, StoreStarted
from snapstore.model.snapshot import ProcessingGuarantee
from snapstore.model.state_facts import StoreFacts, TaskFacts
from snapstore.model.store import StoreLocation
from snapstore.model.strict import nearest_hint
from snapstore.model.units import count
from snapstore.model.unread import Unread
from snapstore.model.verdict import Bounds, LogBounds
from snapstore.operations.fsck_read import ReadStore, made_at, read_store
from snapstore.operations.fsck_report import CheckedTask, FsckReport
from snapstore.operations.fsck_settling import ReadTask, Settling
from snapstore.operations.group_rights import remark_on_group
from snapstore.operations.guarantee import log_ends
from snapstore.operations.stopping import Stop
from snapstore.operations.topic_history import Fences, is_of_old_topic
from snapstore.ports import Changelog, Clock, Listener, StartInspector, StoreBackend

_ATTEMPTS = 5
_FIRST_PAUSE_S = 0.1
_THREADS = 4
_LOGS = 4
"""Changelogs whose ends are looked at: all of them are written by one application."""


class FsckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at, and who will start.

    ``tasks`` and ``stores`` are names, none meaning all. ``guarantee`` is a value of
    `processing.guarantee`, or ``auto``; ``version`` that of Kafka Streams, None where the files
    must tell. ``scan`` reads every block.
    """

    application: str | None = None
    tasks: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    guarantee: str = "auto"
    version: str | None = None
    scan: bool = False


class FsckPorts(msgspec.Struct, frozen=True, kw_only=True):
    """What it works with. ``changelog`` is None where Kafka is not configured.

    ``fences`` are those that the repository knows, by changelog partition: they tell a topic that
    was created again. ``accepted`` returns sentences on what was accepted when a task directory
    was restored.
    """

    inspector: StartInspector
    backends: Mapping[str, StoreBackend]
    clock: Clock
    listener: Listener
    changelog: Changelog | None = None
    fences: Fences = {}
    accepted: Callable[[Path], Iterable[str]] = lambda _: ()


class Locks(msgspec.Struct, frozen=True, kw_only=True):
    """Which task directories an application has open, and of which stores that is not known."""

    running: frozenset[Path] = frozenset()
    untold: Mapping[StoreId, SnapstoreError] = {}


def fsck(state_dir: Path, ports: FsckPorts, options: FsckOptions) -> FsckReport:
    """Judge every store below a state directory; nothing is written, no lock is taken.

    A task that changes meanwhile is read again, some times; one that never stands still is unread.
    A store that cannot be read stops no other. Raises StoreNotFoundError for a name that fits
    nothing, ConfigError, KafkaError, CaptureError when the directory itself cannot be read, and
    StoreChangedError when all that was to be read has gone away.
    """
    settling = Settling()
    for attempt in range(_ATTEMPTS):
        if attempt:
            Stop().sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1))
        found = ports.inspector.read_tasks(state_dir, options.application)
        if not attempt:
            _require_something(found, state_dir, ports, options)
            _require_names(found, options)
        seen = _seen(_chosen(found, options), ports.inspector)
        before = [task for task in seen if not settling.has(task)]
        read = _read_all(before, ports, options)
        if any(task.facts.orphans for task in before):
            # Of a task that is being removed the stores may go before their lines.
            Stop().sleep(_FIRST_PAUSE_S)
        now = ports.inspector.read_tasks(state_dir, options.application)
        settling.add(before, read, [*_seen(_chosen(now, options), ports.inspector)])
        if settling.done:
            break
    tasks = settling.tasks()
    if not tasks and settling.notes():
        raise StoreChangedError(settling.notes()[0], hint="try again", path=str(state_dir))
    _require_names([task.facts for task in tasks], options)
    rights = remark_on_group(state_dir)
    notes = [*settling.notes(), *([rights] if rights else [])]
    return _report(state_dir, tasks, ports, options, notes)


def examine(state_dir: Path, ports: FsckPorts, options: FsckOptions, locks: Locks) -> FsckReport:
    """Judge every store once, as ``locks`` say that they are in use: nothing changes meanwhile."""
    found = _chosen(ports.inspector.read_tasks(state_dir, options.application), options)
    tasks = [*_as_locked(found, locks)]
    return _report(state_dir, _read_all(tasks, ports, options), ports, options)


def _seen(tasks: Sequence[TaskFacts], inspector: StartInspector) -> Iterator[ReadTask]:
    return _as_locked(tasks, look_at_locks(tasks, inspector))


def _as_locked(tasks: Sequence[TaskFacts], locks: Locks) -> Iterator[ReadTask]:
    for task in tasks:
        running = task.task_dir in locks.running
        yield ReadTask(facts=_without(task, locks.untold), running=running)


def _require_something(
    tasks: Sequence[TaskFacts], state_dir: Path, ports: FsckPorts, options: FsckOptions
) -> None:
    """Raise StoreNotFoundError where there is no application: nothing is no clean state."""
    if tasks or ports.inspector.application_dirs(state_dir, options.application):
        return
    raise StoreNotFoundError(
        f"there is no application of Kafka Streams in {state_dir}",
        hint="give the state.dir of the application, or its own directory in there",
        path=str(state_dir),
    )


def _require_names(tasks: Sequence[TaskFacts], options: FsckOptions) -> None:
    """Raise StoreNotFoundError for a task or a store that is named and not there."""
    known_tasks = {task.task for task in tasks}
    known_stores = {store.store.store for task in tasks for store in task.stores}
    known_stores |= {line.store.store for task in tasks for line in task.orphans}
    unread = [each for task in tasks for each in task.unread]
    known_stores |= {each.store.store for each in unread}
    if any(each.whole for each in unread):
        # The name may be of one of those that could not be seen.
        known_tasks |= set(options.tasks)
        known_stores |= set(options.stores)
    for kind, names, known in (
        ("task", options.tasks, known_tasks),
        ("store", options.stores, known_stores),
    ):
        for name in names:
            if name not in known:
                raise StoreNotFoundError(
                    f"no {kind} called {name!r} was found", hint=nearest_hint(name, known)
                )


def _chosen(tasks: Sequence[TaskFacts], options: FsckOptions) -> tuple[TaskFacts, ...]:
    """Keep the named tasks and stores."""
    wanted = [
        task for task in tasks if not options.tasks or task.task in options.tasks or not task.task
    ]
    if not options.stores:
        return tuple(wanted)
    return tuple(
        msgspec.structs.replace(
            task,
            stores=tuple(each for each in task.stores if each.store.store in options.stores),
            orphans=tuple(each for each in task.orphans if each.store.store in options.stores),
            unread=tuple(
                each for each in task.unread if each.whole or each.store.store in options.stores
            ),
        )
        for task in wanted
    )


def look_at_locks(tasks: Sequence[TaskFacts], inspector: StartInspector) -> Locks:
    """Ask which stores an application has open: all with one question, where that can be told."""
    locations = [store.location for task in tasks for store in task.stores]
    try:
        held = inspector.which_in_use(locations)
    except CaptureError:
        return _locks_one_by_one(locations, inspector)
    return Locks(running=frozenset(location.task_dir for location in held))


def _locks_one_by_one(locations: Sequence[StoreLocation], inspector: StartInspector) -> Locks:
    running: set[Path] = set()
    untold: dict[StoreId, SnapstoreError] = {}
    for location in locations:
        try:
            running.update(one.task_dir for one in inspector.which_in_use([location]))
        except CaptureError as error:
            untold[location.store] = error
    return Locks(running=frozenset(running), untold=untold)


def _without(task: TaskFacts, errors: Mapping[StoreId, SnapstoreError]) -> TaskFacts:
    """Set those stores of a task apart, since they could not be looked at."""
    return msgspec.structs.replace(
        task,
        stores=tuple(store for store in task.stores if store.store not in errors),
        unread=(
            *task.unread,
            *(
                Unread(store=store.store, path=store.location.path, error=errors[store.store])
                for store in task.stores
                if store.store in errors
            ),
        ),
    )


def _read_all(tasks: Sequence[ReadTask], ports: FsckPorts, options: FsckOptions) -> list[ReadTask]:
    """Fill in the stores of every task, a few at a time."""

    def read(store: StoreFacts, running: bool) -> ReadStore | SnapstoreError:
        if options.scan:
            ports.listener(StoreStarted(store=store.store, stage="verify", total=None))
        try:
            done = read_store(
                store,
                ports.inspector,
                ports.backends,
                running=running,
                scan=options.scan,
            )
        except (CaptureError, UnsafePathError) as error:
            if options.scan:
                ports.listener(StoreFinished(store=store.store, outcome=error.message, ok=False))
            return error
        if options.scan:
            outcome = f"{count(done.pairs, 'pair')} read"
            ports.listener(
                StoreFinished(store=store.store, outcome=outcome, ok=not done.facts.damage)
            )
        return done

    with ThreadPoolExecutor(_THREADS, "fsck") as threads:
        pending = [
            (task, [threads.submit(read, store, task.running) for store in task.facts.stores])
            for task in tasks
        ]
        return [_filled(task, [future.result() for future in each]) for task, each in pending]


def _filled(task: ReadTask, stores: Sequence[ReadStore | SnapstoreError]) -> ReadTask:
    errors = {
        store.store: each
        for store, each in zip(task.facts.stores, stores, strict=True)
        if isinstance(each, SnapstoreError)
    }
    read = [each for each in stores if isinstance(each, ReadStore)]
    facts = msgspec.structs.replace(
        task.facts,
        stores=tuple(each.facts for each in read),
        unread=_without(task.facts, errors).unread,
    )
    return ReadTask(facts=facts, running=task.running, pairs=sum(each.pairs for each in read))


def _report(
    state_dir: Path,
    read: Sequence[ReadTask],
    ports: FsckPorts,
    options: FsckOptions,
    notes: Sequence[str] = (),
) -> FsckReport:
    tasks = [task.facts for task in read]
    bounds = look_up(tasks, ports)
    checked = []
    logged: dict[str, ProcessingGuarantee | None] = {}
    for task in read:
        own = [each for each in tasks if each.application == task.facts.application]
        application = task.facts.application
        if application not in logged:
            logged[application] = _logged(application, own, ports, options)
        conditions = conditions_of(
            own,
            guarantee=options.guarantee,
            version=options.version,
            logged=logged[application],
        )
        checked.append(
            CheckedTask(
                facts=task.facts,
                conditions=conditions,
                verdicts=judge_task(task.facts, conditions, bounds),
                running=task.running,
            )
        )
    told = [*notes, *(note for task in tasks for note in task.leftovers)]
    told += [note for task in tasks for note in ports.accepted(task.task_dir)]
    told += [
        f"{task.task_dir}: what .checkpoint notes for {', '.join(map(str, task.foreign_lines))} is "
        "of another task, and nobody reads it here"
        for task in tasks
        if task.foreign_lines
    ]
    return FsckReport(
        state_dir=state_dir,
        tasks=tuple(checked),
        notes=tuple(told),
        scanned_pairs=sum(task.pairs for task in read) if options.scan else None,
        bounds=None if ports.changelog is None else bounds,
    )


def _logged(
    application: str, tasks: Sequence[TaskFacts], ports: FsckPorts, options: FsckOptions
) -> ProcessingGuarantee | None:
    """Return the guarantee that the ends of some changelogs show; None where it does not matter."""
    if ports.changelog is None or options.guarantee != AUTO:
        return None
    stores = [store for task in tasks if not task.is_global for store in task.stores]
    opened = any(
        database.status == "open"
        for task in tasks
        for store in task.stores
        for database in store.databases
    )
    if not opened:
        return None
    named = {each for store in stores for each in store.changelogs}
    changelogs = sorted(named or {store.presumed for store in stores if store.presumed})
    ends = log_ends(ports.changelog, changelogs[:_LOGS], ports.clock)
    return by_logs(application, ends).guarantee


def look_up(tasks: Sequence[TaskFacts], ports: FsckPorts) -> Bounds:
    """Ask Kafka for every changelog of the tasks; empty where it is not configured."""
    changelog = ports.changelog
    if changelog is None:
        return {}
    stores: dict[ChangelogPartition, StoreFacts | None] = {
        line.changelog: None for task in tasks for line in task.orphans
    }
    stores |= {
        partition: store
        for task in tasks
        for store in task.stores
        for partition in (store.changelogs or ((store.presumed,) if store.presumed else ()))
    }
    now = ports.clock()

    def bounds(partition: ChangelogPartition) -> LogBounds | None:
        try:
            state = changelog.inspect(partition, now=now)
        except ChangelogGoneError:
            return None
        store = stores[partition]
        replaced = store is not None and is_of_old_topic(
            ports.fences.get(partition, ()), state.topic_id, partial(made_at, store.location)
        )
        return LogBounds(
            start=state.log_start,
            end=state.log_end,
            high_watermark=state.high_watermark,
            expires="delete" in state.cleanup_policy.split(","),
            replaced_by=state.topic_id if replaced else None,
        )

    with ThreadPoolExecutor(_THREADS, "fsck-kafka") as threads:
        return dict(zip(stores, threads.map(bounds, stores), strict=True))

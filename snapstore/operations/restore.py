"""Bring stores back from their snapshots, one task directory after the other.

Each task is built beside the directory in use and put into place as a whole: a crash leaves the old
one, the new one, or none, and the next run goes on from what was fetched.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from snapstore.errors import (
    IntegrityError,
    PartialFailureError,
    SnapstoreError,
    TombstoneHorizonError,
    UnavailableError,
)
from snapstore.model.folder import Folder
from snapstore.model.report import Noted, Planned, StoreFinished, StoreStarted
from snapstore.model.units import count
from snapstore.operations.lineage import with_accepted
from snapstore.operations.name_folding import require_apart
from snapstore.operations.quarantine import keep_in_quarantine
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.replay import ReplayedPartition
from snapstore.operations.restore_choice import Request
from snapstore.operations.restore_deletions import delete_staged, without_unapplied
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.restore_plan import RestorePlan, StorePlan, TaskPlan
from snapstore.operations.restore_replay import ReplayedStore, needs_replay
from snapstore.operations.restore_report import (
    FailedTask,
    RestoreReport,
    UnrestorableStore,
    restored_store,
)
from snapstore.operations.restore_settings import RestoreOptions, RestorePorts
from snapstore.operations.restore_tasks import Planner, Task
from snapstore.operations.stage import Parts, settle, stage
from snapstore.operations.stage_files import FileWriter, os_errors, told_of_owner
from snapstore.operations.swap import clear_work, recover, swap_in
from snapstore.operations.work_area import WorkArea, make_tasks

__all__ = ["RestoreOptions", "RestorePorts", "plan_restore", "restore"]


def plan_restore(
    requests: Sequence[Request], target: Path, ports: RestorePorts, options: RestoreOptions
) -> RestorePlan:
    """Return what ``restore`` would do; nothing is written, and no lock is taken.

    Raises what ``restore`` would raise before its first write.
    """
    planner = Planner(target, ports, options)
    tasks = planner.choose(requests)
    _require_replayable(tasks, ports)
    return planner.plan(tasks)


def restore(
    requests: Sequence[Request], target: Path, ports: RestorePorts, options: RestoreOptions
) -> RestoreReport:
    """Bring the requested stores back below a state directory.

    Tasks are done one after the other. Before anything is written, raises UnsafePathError,
    ConfigError, UncheckedChangelogError and whatever ``check`` raises, TargetNotEmptyError,
    WrongGenerationError, NotReplayableError, NoSpaceError, StoreInUseError, RunInProgressError.
    Later, raises the error of the first task when none could be done, else PartialFailureError with
    ``report``.
    """
    planner = Planner(target, ports, options)
    tasks = planner.choose(requests)
    if not any(task.task_dir.parent.exists() for task in tasks):
        planner.plan(tasks)
    _require_replayable(tasks, ports)
    with ExitStack() as held:
        run = _Run(planner, tasks, ports, options)
        run.hold(held)
        run.recover()
        plan = planner.plan(tasks)
        run.require_apart(plan)
        for note in plan.notes:
            ports.listener(Noted(message=note))
        sizes = {
            str(store.store): store.fetch_bytes for task in plan.tasks for store in task.stores
        }
        ports.listener(Planned(sizes=sizes))
        report = run.carry_out(plan)
    if report.failed:
        raise PartialFailureError(
            f"{len(report.failed)} of {count(len(tasks), 'task')} could not be restored:"
            f" {report.failed[0].reason}",
            hint="the others are in place; run it again for those that failed",
            report=msgspec.to_builtins(report, enc_hook=str),
        )
    return report


def _require_replayable(tasks: Sequence[Task], ports: RestorePorts) -> None:
    """Raise NotReplayableError where that is known before anything is fetched."""
    if ports.replay is None:
        return
    for task in tasks:
        for wanted in task.wanted:
            ports.replay.require_possible(wanted)


class _Done(msgspec.Struct, frozen=True, kw_only=True):
    """A task in its place. ``kept`` is where its old directory was kept."""

    plan: TaskPlan
    kept: Path | None
    replayed: tuple[ReplayedStore, ...]

    def replayed_into(self, store: StorePlan) -> tuple[ReplayedPartition, ...]:
        return next((x.partitions for x in self.replayed if x.store == str(store.store)), ())


class _Run:
    """Carries a plan out while the applications are kept from starting."""

    def __init__(
        self, planner: Planner, tasks: list[Task], ports: RestorePorts, options: RestoreOptions
    ) -> None:
        self._planner = planner
        self._tasks = tasks
        self._ports = ports
        self._options = options
        rate = options.limit_bytes_per_second
        self._parts = Parts(
            storage=ports.repository.storage,
            layout=ports.layout,
            backends=ports.backends,
            listener=ports.listener,
            parallel=options.parallel,
            limit=None if rate is None else RateLimit(rate),
        )

    def hold(self, held: ExitStack) -> None:
        """Keep the applications from starting, and other restores from the same folders."""
        target, permissions = self._planner.target, self._options.permissions
        if told := told_of_owner(permissions):
            self._warn(told)
        folders: dict[Path, Folder] = {}
        applications: set[str] = set()
        for task in self._tasks:
            parent = task.task_dir.parent
            if parent not in folders:
                made = make_tasks(target, parent, permissions, self._warn)
                folders[parent] = held.enter_context(made)
            application = task.description.store.application
            if application not in applications:
                applications.add(application)
                held.enter_context(self._ports.layout.hold(target, task.description))
        for parent, tasks in sorted(folders.items()):
            writer = FileWriter.within(tasks, permissions, self._warn)
            self._planner.areas[parent] = held.enter_context(work_lock(tasks, writer))
        self._ports.reached("held")

    def recover(self) -> None:
        """Resolve the swaps that earlier runs did not end, of whatever task."""
        for area in self._planner.areas.values():
            for note in recover(area, reached=self._ports.reached):
                self._warn(note)

    def require_apart(self, plan: RestorePlan) -> None:
        """Raise UnsafePathError where the file system takes names of a task for one."""
        for task in plan.tasks:
            names = [name for store in task.stores for name in store.modes]
            names += [keep.name for keep in task.keep]
            with os_errors(task.task_dir):
                require_apart(self._planner.areas[task.task_dir.parent].own, names)

    def carry_out(self, plan: RestorePlan) -> RestoreReport:
        """Restore task after task. One that fails stops no other, unless the storage or disk did.

        Raises the error of the first task when none could be done.
        """
        done: list[_Done] = []
        failed: list[FailedTask] = []
        first: SnapstoreError | None = None
        for task, task_plan in zip(self._tasks, plan.tasks, strict=True):
            try:
                if isinstance(first, UnavailableError):
                    raise UnavailableError(f"not tried any more, since {first.message}")
                final = self._restore_task(task, task_plan)
            except SnapstoreError as error:
                first = first or error
                failed.append(
                    FailedTask(task_dir=task.task_dir, code=error.code, reason=error.message)
                )
                self._tell(task_plan, error.message, ok=False)
                continue
            done.append(final)
            self._tell(final.plan, "restored", ok=True)
        if first is not None and not done:
            raise first
        if first is None:
            for area in self._planner.areas.values():
                clear_work(area)
        return RestoreReport(
            target=self._planner.target,
            stores=tuple(
                restored_store(each, task.plan, task.replayed_into(each))
                for task in done
                for each in task.plan.stores
            ),
            kept_stores=tuple(name for task in done for name in task.plan.kept_stores),
            replaced=tuple(task.kept for task in done if task.kept is not None),
            failed=tuple(failed),
            notes=plan.notes,
            unrestorable=tuple(
                UnrestorableStore(store=str(store), code=error.code, reason=error.message)
                for store, error in self._planner.unrestorable.items()
            ),
        )

    def _restore_task(self, task: Task, plan: TaskPlan) -> "_Done":
        """Stage and swap in one task; go back to older snapshots as long as newer are damaged."""
        area = self._planner.areas[task.task_dir.parent]
        name = task.task_dir.name
        writer = FileWriter.within(
            area.tasks, self._options.permissions, self._warn, replacing=name
        )
        plan = self._staged(task, plan, area, writer)
        changed = self._options.delete_noted and delete_staged(
            plan, area, self._ports.layout, self._ports.backends, self._ports.listener
        )
        self._ports.reached("deletions applied")
        replayed: tuple[ReplayedStore, ...] = ()
        if self._ports.replay is not None:
            replayed = self._ports.replay.run(plan, area, writer)
        if changed or replayed:
            settle(area.staged(name), writer)
        self._require_time(plan)
        self._set_aside(task, plan, area, writer)
        kept = swap_in(
            area,
            name,
            writer=writer,
            now=self._ports.clock(),
            keep_replaced=self._options.keep_replaced,
            reached=self._ports.reached,
        )
        if self._ports.replay is not None:
            self._ports.replay.forget(plan, area)
        if self._ports.remember is not None:
            applied = self._options.delete_noted
            positions = {
                each.store.store: with_accepted(
                    without_unapplied(each.wanted.snapshot.description.positions, applied=applied),
                    each.wanted.accepted,
                )
                for each in plan.stores
            }
            self._ports.remember(task.task_dir, positions)
        return _Done(plan=plan, kept=kept, replayed=replayed)

    def _set_aside(self, task: Task, plan: TaskPlan, area: WorkArea, writer: FileWriter) -> None:
        """Keep what is about to be replaced, where that was asked for: it may hold rows that the
        changelog has no more."""
        paths, reasons = self._planner.set_aside(task)
        if not paths:
            return
        staged = area.staged(task.task_dir.name)
        gone = [keep.name for keep in plan.keep if not os.path.lexists(staged / keep.name)]
        paths = (*paths, *gone)
        name = task.task_dir.name
        place = keep_in_quarantine(area, name, paths, reasons, self._ports.clock(), writer)
        self._ports.reached("set aside")
        if place is not None:
            self._ports.listener(
                Noted(message=f"what {task.task_dir} held of restored stores is in {place}")
            )

    def _staged(self, task: Task, plan: TaskPlan, area: WorkArea, writer: FileWriter) -> TaskPlan:
        """Make the staged directory complete, and return the plan that did it in the end."""
        replay = self._ports.replay
        if replay is not None and replay.can_go_on(plan, area):
            self._ports.listener(Noted(message=f"{task.task_dir}: going on with the replay"))
            return plan
        while True:
            if replay is not None:
                replay.forget(plan, area)
            for store in plan.stores:
                self._ports.listener(
                    StoreStarted(store=store.store, stage="download", total=store.fetch_bytes)
                )
            try:
                with os_errors(task.task_dir):
                    stage(plan, area, self._parts, writer, self._ports.reached)
            except IntegrityError as error:
                self._planner.choose_older(task, error)
                plan = self._planned_again(task)
            else:
                return plan

    def _planned_again(self, task: Task) -> TaskPlan:
        again = self._planner.plan([task])
        for note in again.notes:
            self._ports.listener(Noted(message=note))
        return again.tasks[0]

    def _require_time(self, plan: TaskPlan) -> None:
        """Raise TombstoneHorizonError when fetching took so long that deletions may be lost."""
        if not self._options.application_replays:
            return
        for store in plan.stores:
            deadline = store.wanted.replay_before
            if deadline is None or needs_replay(store.wanted):
                continue
            if self._ports.clock() >= deadline:
                raise TombstoneHorizonError(
                    f"{store.store} would have had to be replayed before {deadline.isoformat()}:"
                    " deletions after the snapshot may be compacted away by now",
                    hint="the target was left as it was; restore a newer snapshot",
                    store=str(store.store),
                    deadline=deadline.isoformat(),
                )
            self._ports.listener(
                Noted(
                    message=f"{store.store}: start the application in time, it must have replayed"
                    f" its changelog before {deadline.isoformat()}"
                )
            )

    def _warn(self, message: str) -> None:
        self._ports.listener(Noted(message=message))

    def _tell(self, plan: TaskPlan, outcome: str, *, ok: bool) -> None:
        for store in plan.stores:
            self._ports.listener(StoreFinished(store=store.store, outcome=outcome, ok=ok))

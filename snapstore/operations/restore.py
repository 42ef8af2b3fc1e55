"""Bring stores back from their snapshots, one task directory after the other.

Each task is built beside the directory in use and put into place as a whole: a crash leaves the old
one, the new one, or none, and the next run goes on from what was fetched.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import msgspec

from snapstore.errors import (
    ConfigError,
    IntegrityError,
    PartialFailureError,
    PluginError,
    SnapstoreError,
    UnavailableError,
)
from snapstore.model.identity import natural_order
from snapstore.model.report import Noted, StoreFinished, StoreStarted
from snapstore.model.snapshot import Description
from snapstore.model.store import StoreLocation
from snapstore.operations.rate_limit import RateLimit
from snapstore.operations.restore_choice import Check, Chooser, Request, skip
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.restore_names import check_inside, check_names
from snapstore.operations.restore_plan import (
    PresentStore,
    RestorePlan,
    Skipped,
    StorePlan,
    TaskPlan,
    Wanted,
    check_space,
    missing_stores,
    plan_task,
)
from snapstore.operations.restore_report import FailedTask, RestoredStore, RestoreReport
from snapstore.operations.restore_target import (
    check_target,
    check_writable,
    look_at_task,
    work_folder,
)
from snapstore.operations.stage import Parts, stage
from snapstore.operations.stage_files import FileWriter, Permissions, owner_for
from snapstore.operations.swap import Reached, clear_work, recover, swap_in
from snapstore.ports import Clock, Layout, Listener, StoreBackend
from snapstore.repository import Repository


class RestoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a restore is done; every permission to do something dangerous is off.

    ``permissions.owner`` None: as root, the owner of the target directory.
    """

    replace: bool = False
    keep_replaced: bool = False
    allow_unchecked_changelog: bool = False
    permissions: Permissions = Permissions()
    parallel: int = 8
    limit_bytes_per_second: int | None = None


class RestorePorts(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore works with. ``backends`` are by name.

    ``check`` proves a snapshot against its changelog; None where Kafka is not configured.
    ``reached`` is called at named points of the work.
    """

    repository: Repository
    layout: Layout
    backends: Mapping[str, StoreBackend]
    check: Check | None
    clock: Clock
    listener: Listener
    reached: Reached = lambda _: None


def plan_restore(
    requests: Sequence[Request], target: Path, ports: RestorePorts, options: RestoreOptions
) -> RestorePlan:
    """Return what ``restore`` would do; nothing is written, and no lock is taken.

    Raises what ``restore`` would raise before its first write.
    """
    return _Restore(requests, target, ports, options).plan()


def restore(
    requests: Sequence[Request], target: Path, ports: RestorePorts, options: RestoreOptions
) -> RestoreReport:
    """Bring the requested stores back below a state directory.

    Tasks are done one after the other. Before anything is written, raises UnsafePathError,
    ConfigError, UncheckedChangelogError and whatever ``check`` raises, TargetNotEmptyError,
    WrongGenerationError, NoSpaceError, StoreInUseError, RunInProgressError. Later, raises the
    error of the first task when none could be done, else PartialFailureError with ``report``.
    """
    return _Restore(requests, target, ports, options).run()


class _Task(msgspec.Struct, kw_only=True):
    """One task directory and the requests that go into it; ``failed`` grows as damage is found."""

    task_dir: Path
    requests: list[Request]
    wanted: list[Wanted]
    failed: list[Skipped]

    @property
    def description(self) -> Description:
        return self.wanted[0].snapshot.description


class _Restore:
    """One run. What it holds open is freed when it ends."""

    def __init__(
        self,
        requests: Sequence[Request],
        target: Path,
        ports: RestorePorts,
        options: RestoreOptions,
    ) -> None:
        if not requests:
            raise ConfigError("nothing was named to restore")
        self._target = target.resolve()
        self._ports = ports
        self._options = options
        self._layout = ports.layout
        self._catalog = ports.repository.catalog
        self._chooser = Chooser(
            ports.repository,
            check=ports.check,
            allow_unchecked_changelog=options.allow_unchecked_changelog,
        )
        self._notes: list[str] = []
        check_target(self._target)
        self._tasks = self._chosen(requests)
        limit = options.limit_bytes_per_second
        self._limit = None if limit is None else RateLimit(limit)

    def plan(self) -> RestorePlan:
        notes = [*self._notes]
        tasks = []
        for task in self._tasks:
            plan, task_notes = self._plan_task(task)
            tasks.append(plan)
            notes += task_notes
        check_space(tasks)
        return RestorePlan(target=self._target, tasks=tuple(tasks), notes=tuple(dict.fromkeys(notes)))

    def run(self) -> RestoreReport:
        if not any(task.task_dir.parent.exists() for task in self._tasks):
            self.plan()
        with ExitStack() as held:
            self._hold(held)
            self._recover()
            plan = self.plan()
            for note in plan.notes:
                self._ports.listener(Noted(message=note))
            report = self._carry_out(plan)
        return _judged(report, plan)

    def _chosen(self, requests: Sequence[Request]) -> list[_Task]:
        tasks: dict[Path, _Task] = {}
        for request in requests:
            wanted = self._chooser.choose(request)
            check_names([wanted.manifest])
            description = wanted.manifest.description
            self._require_plugins(description)
            task_dir = self._layout.task_dir(self._target, description)
            check_inside(self._target, task_dir)
            check_writable(task_dir)
            task = tasks.setdefault(
                task_dir, _Task(task_dir=task_dir, requests=[], wanted=[], failed=[])
            )
            if any(each.snapshot.description.store == description.store for each in task.wanted):
                raise ConfigError(f"{description.store} is to be restored twice")
            task.requests.append(request)
            task.wanted.append(wanted)
        check_names(wanted.manifest for task in tasks.values() for wanted in task.wanted)
        return sorted(tasks.values(), key=lambda task: natural_order(str(task.task_dir)))

    def _require_plugins(self, description: Description) -> None:
        if description.layout != self._layout.name:
            raise ConfigError(
                f"{description.store} was found by the layout {description.layout!r}, and this is"
                f" {self._layout.name!r}",
                layout=description.layout,
            )
        if description.backend not in self._ports.backends:
            raise PluginError(
                f"there is no backend {description.backend!r}, which {description.store} needs",
                backend=description.backend,
            )

    def _plan_task(self, task: _Task) -> tuple[TaskPlan, list[str]]:
        present = self._present(task)
        target = look_at_task(
            task.task_dir,
            [entry for wanted in task.wanted for entry in wanted.manifest.files],
            [
                PresentStore(store=each.store.store, root=each.root, side_files=each.side_files)
                for each in present
                if each.task_dir.resolve() == task.task_dir
            ],
        )
        plan = plan_task(
            target,
            task.wanted,
            replace=self._options.replace,
            keep_replaced=self._options.keep_replaced,
        )
        return plan, self._notes_on(task, plan)

    def _present(self, task: _Task) -> tuple[StoreLocation, ...]:
        """Find the stores of that application which the target holds already."""
        if not task.task_dir.exists():
            return ()
        return self._layout.discover(self._target, task.description.store.application).locations

    def _notes_on(self, task: _Task, plan: TaskPlan) -> list[str]:
        notes = [
            note
            for wanted in task.wanted
            for note in self._layout.check_target(self._target, wanted.snapshot.description)
        ]
        notes += [
            f"{wanted.snapshot.description.store}: snapshot {skipped.snapshot_id[:12]} was passed"
            f" over: {skipped.reason}"
            for wanted in task.wanted
            for skipped in wanted.skipped
        ]
        store = task.description.store
        listed = self._catalog.list_application(store.application).snapshots
        known = {each.store.store for each in listed if each.store.task == store.task}
        if missing := missing_stores(plan, known):
            notes.append(
                f"task {store.task} will lack {', '.join(missing)}: under exactly-once the"
                " application wipes such a task and replays all of it"
            )
        notes += [f"{name} belongs to one host and was left out" for name in plan.left_out]
        return notes

    def _hold(self, held: ExitStack) -> None:
        """Keep the applications from starting, and other restores from the same folders."""
        applications: set[str] = set()
        for task in self._tasks:
            description = task.description
            writer = self._writer(task.task_dir)
            writer.make_folder(task.task_dir.parent)
            application = description.store.application
            if application not in applications:
                applications.add(application)
                held.enter_context(self._layout.hold(self._target, description))
        for task_dir in {task.task_dir.parent: task.task_dir for task in self._tasks}.values():
            held.enter_context(work_lock(work_folder(task_dir), self._writer(task_dir)))
        self._ports.reached("held")

    def _recover(self) -> None:
        for task in self._tasks:
            found = recover(task.task_dir, reached=self._ports.reached)
            if found.note is not None:
                self._ports.listener(Noted(message=found.note))

    def _carry_out(self, plan: RestorePlan) -> RestoreReport:
        stores: list[RestoredStore] = []
        done: list[TaskPlan] = []
        failed: list[FailedTask] = []
        replaced: list[Path] = []
        cause: SnapstoreError | None = None
        for task, task_plan in zip(self._tasks, plan.tasks, strict=True):
            if isinstance(cause, UnavailableError):
                failed.append(
                    FailedTask(task_dir=task.task_dir, code=cause.code, reason="not tried any more")
                )
                continue
            try:
                final, kept = self._restore_task(task, task_plan)
            except SnapstoreError as error:
                cause = error
                failed.append(
                    FailedTask(task_dir=task.task_dir, code=error.code, reason=error.message)
                )
                self._tell(task_plan, error.message, ok=False)
                if len(self._tasks) == len(failed) == 1:
                    raise
                continue
            done.append(final)
            stores += [_restored(store, final.task_dir) for store in final.stores]
            replaced += [kept] if kept else []
            self._tell(final, "restored", ok=True)
        if not done and cause is not None:
            raise cause
        if not failed:
            for task in self._tasks:
                clear_work(task.task_dir)
        return RestoreReport(
            target=self._target,
            stores=tuple(stores),
            kept_stores=tuple(name for each in done for name in each.kept_stores),
            replaced=tuple(replaced),
            failed=tuple(failed),
            notes=plan.notes,
        )

    def _restore_task(self, task: _Task, plan: TaskPlan) -> tuple[TaskPlan, Path | None]:
        """Stage and swap in one task; go back to older snapshots as long as newer are damaged."""
        while True:
            for store in plan.stores:
                self._ports.listener(
                    StoreStarted(store=store.store, stage="download", total=store.fetch_bytes)
                )
            writer = self._writer(task.task_dir)
            try:
                stage(plan, self._parts(), writer, self._ports.reached)
            except IntegrityError as error:
                plan = self._with_older(task, error)
                continue
            kept = swap_in(
                task.task_dir,
                writer=writer,
                now=self._ports.clock(),
                keep_replaced=self._options.keep_replaced,
                reached=self._ports.reached,
            )
            return plan, kept

    def _with_older(self, task: _Task, error: IntegrityError) -> TaskPlan:
        """Choose again without the damaged snapshots; raise the error when they were asked for."""
        broken = cast("list[str]", error.facts.get("stores", []))
        changed = False
        for index, wanted in enumerate(task.wanted):
            if str(wanted.snapshot.description.store) not in broken:
                continue
            if not task.requests[index].latest:
                error.facts.setdefault("snapshot", wanted.snapshot.id)
                raise error
            task.failed.append(skip(wanted.snapshot.id, error))
            task.wanted[index] = self._chooser.choose(task.requests[index], task.failed)
            check_names([task.wanted[index].manifest])
            changed = True
        if not changed:
            raise error
        plan, notes = self._plan_task(task)
        check_space([plan])
        for note in notes:
            self._ports.listener(Noted(message=note))
        return plan

    def _parts(self) -> Parts:
        return Parts(
            storage=self._ports.repository.storage,
            layout=self._layout,
            backends=self._ports.backends,
            listener=self._ports.listener,
            parallel=self._options.parallel,
            limit=self._limit,
        )

    def _writer(self, task_dir: Path) -> FileWriter:
        permissions = self._options.permissions
        if permissions.owner is None:
            permissions = msgspec.structs.replace(permissions, owner=owner_for(task_dir))
        return FileWriter(permissions, lambda text: self._ports.listener(Noted(message=text)))

    def _tell(self, plan: TaskPlan, outcome: str, *, ok: bool) -> None:
        for store in plan.stores:
            self._ports.listener(StoreFinished(store=store.store, outcome=outcome, ok=ok))


def _restored(plan: StorePlan, task_dir: Path) -> RestoredStore:
    wanted = plan.wanted
    return RestoredStore(
        store=str(plan.store),
        snapshot_id=wanted.snapshot.id,
        task_dir=task_dir,
        fetched_files=sum(len(fetch.names) for fetch in plan.fetch),
        fetched_bytes=plan.fetch_bytes,
        reused_files=len(plan.reuse),
        reused_bytes=plan.reuse_bytes,
        resume_offsets={
            str(each.position.changelog): each.position.resume_offset
            for each in wanted.snapshot.description.positions
        },
        records_to_replay=wanted.records_to_replay,
        skipped=wanted.skipped,
    )


def _judged(report: RestoreReport, plan: RestorePlan) -> RestoreReport:
    if report.failed:
        raise PartialFailureError(
            f"{len(report.failed)} of {len(plan.tasks)} tasks could not be restored:"
            f" {report.failed[0].reason}",
            hint="the others are in place; run it again for those that failed",
            report=msgspec.to_builtins(report, enc_hook=str),
        )
    return report

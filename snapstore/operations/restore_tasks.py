"""Choose the snapshots for each task directory, and plan what becomes of it."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import cast

import msgspec

from snapstore.errors import (
    ConfigError,
    InMemoryStoreError,
    IntegrityError,
    PluginError,
    SnapstoreError,
    StoreNotFoundError,
    UncheckedChangelogError,
    UnsafePathError,
    WrongGenerationError,
)
from snapstore.model.accepted import told
from snapstore.model.identity import StoreId, natural_order
from snapstore.model.snapshot import Description
from snapstore.model.store import StoreLocation
from snapstore.operations.restore_back import Step, notes_on, steps
from snapstore.operations.restore_choice import (
    NOT_COMPLETE,
    NOT_USABLE,
    Chooser,
    Request,
    skip,
    with_choices,
)
from snapstore.operations.restore_names import check_inside
from snapstore.operations.restore_plan import (
    PresentStore,
    RestorePlan,
    Skipped,
    TaskPlan,
    Wanted,
    check_space,
    missing_stores,
    plan_task,
)
from snapstore.operations.restore_rocksdb import check_rocksdb
from snapstore.operations.restore_settings import RestoreOptions, RestorePorts
from snapstore.operations.restore_target import (
    check_target,
    check_writable,
    look_at_task,
    remark_on_place,
)
from snapstore.operations.work_area import WorkArea, found_area


class Task(msgspec.Struct, kw_only=True):
    """One task directory and the requests that go into it; ``failed`` grows as damage is found."""

    task_dir: Path
    requests: list[Request]
    wanted: list[Wanted]
    failed: list[Skipped]

    @property
    def description(self) -> Description:
        return self.wanted[0].snapshot.description


class Planner:
    """Plans restores to one target; reads there and in the repository, and writes nothing.

    ``areas`` are those that a run holds, by the folders of tasks.
    """

    def __init__(self, target: Path, ports: RestorePorts, options: RestoreOptions) -> None:
        self.target = target.resolve()
        self._ports = ports
        self._options = options
        self._chooser = Chooser(
            ports.repository,
            check=ports.check,
            allow_unchecked_changelog=options.allow_unchecked_changelog,
            clock=ports.clock,
        )
        self._known: dict[str, Mapping[str, set[str]]] = {}
        self.unrestorable: dict[StoreId, SnapstoreError] = {}
        self.in_memory: dict[StoreId, SnapstoreError] = {}
        self._there: dict[Path, list[PresentStore]] = {}
        self.areas: dict[Path, WorkArea] = {}
        check_target(self.target)

    def choose(self, requests: Sequence[Request]) -> list[Task]:
        """Choose a snapshot for every request, and sort them into task directories.

        Raises what ``restore`` names for the time before its first write.
        """
        if not requests:
            raise ConfigError("nothing was named to restore")
        tasks: dict[Path, Task] = {}
        for request, wanted in self._usable(requests):
            description = wanted.snapshot.description
            self._require_plugins(description)
            task_dir = self._ports.layout.task_dir(self.target, description)
            check_inside(self.target, task_dir)
            check_writable(task_dir)
            check_writable(task_dir.parent)
            task = tasks.setdefault(
                task_dir, Task(task_dir=task_dir, requests=[], wanted=[], failed=[])
            )
            if any(each.snapshot.description.store == description.store for each in task.wanted):
                raise ConfigError(f"{description.store} is to be restored twice")
            task.requests.append(request)
            task.wanted.append(wanted)
        return sorted(tasks.values(), key=lambda task: natural_order(str(task.task_dir)))

    def _usable(self, requests: Sequence[Request]) -> list[tuple[Request, Wanted]]:
        """Choose for every request; raise the first error unless such stores may be left out."""
        chosen: list[tuple[Request, Wanted]] = []
        errors: dict[StoreId, SnapstoreError] = {}
        for request in requests:
            try:
                wanted = self._chooser.choose(request)
                self._require_loaded(wanted.snapshot.description)
                chosen.append((request, wanted))
            except (UnsafePathError, UncheckedChangelogError):
                raise
            except InMemoryStoreError as error:
                if not request.latest:
                    raise
                self.in_memory[request.candidates[0].store] = error
            except NOT_USABLE as error:
                if not request.latest or not request.candidates:
                    raise
                errors[request.candidates[0].store] = error
        if not errors and not chosen:
            raise next(iter(self.in_memory.values()))
        if errors and (not self._options.skip_unrestorable or not chosen):
            usable = [wanted.snapshot.description.store for _, wanted in chosen]
            raise with_choices(next(iter(errors.values())), [*errors], usable)
        self.unrestorable |= errors | self.in_memory
        return chosen

    def _require_loaded(self, description: Description) -> None:
        """Raise InMemoryStoreError; whatever else is wrong with the target the plan will say."""
        with suppress(WrongGenerationError):
            self._ports.layout.check_target(self.target, description)

    def _leave_out(self, task: Task, index: int, error: SnapstoreError) -> None:
        """Take a store out of a task; raises the error unless that is allowed and others stay."""
        if not self._options.skip_unrestorable or len(task.wanted) == 1:
            raise error
        self.unrestorable[task.wanted[index].snapshot.description.store] = error
        del task.requests[index], task.wanted[index]

    def choose_older(self, task: Task, error: IntegrityError) -> None:
        """Put older snapshots in place of those that ``error`` has shown to be damaged.

        Raises the error when it names none of them, or when one was asked for by name.
        """
        broken = cast("list[str]", error.facts.get("stores", []))
        stores = [str(wanted.snapshot.description.store) for wanted in task.wanted]
        if not set(broken) & set(stores):
            raise error
        for index, request in reversed([*enumerate(task.requests)]):
            if stores[index] not in broken:
                continue
            damaged = task.wanted[index].snapshot.id
            if not request.latest:
                error.facts.setdefault("snapshot", damaged)
                raise error
            task.failed.append(skip(damaged, error))
            try:
                older = self._chooser.choose(request, task.failed)
            except NOT_USABLE as unusable:
                self._leave_out(task, index, unusable)
                continue
            task.wanted[index] = older

    def plan(self, tasks: Iterable[Task]) -> RestorePlan:
        """Return what will be done; raises TargetNotEmptyError, WrongGenerationError, NoSpaceError.

        Files in the target that could be of use are read and hashed.
        """
        planned = [*tasks]
        notes = self._check_generations(planned)
        if remark := remark_on_place(self.target):
            notes.append(remark)
        found = self._discover(planned)
        wanted = [each.manifest for task in planned for each in task.wanted]
        notes += check_rocksdb(wanted, found, self._options.version)
        plans = []
        for task in planned:
            plan = self._plan_task(task, found)
            plans.append(plan)
            notes += self._notes_on(task, plan)
        check_space(plans)
        left_out = {store: error.message for store, error in self.unrestorable.items()}
        return RestorePlan(
            target=self.target, tasks=tuple(plans), notes=tuple(notes), left_out=left_out
        )

    def set_aside(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the paths of a planned task that go to quarantine, and the reasons."""
        paths: dict[str, None] = {}
        reasons = []
        for wanted in task.wanted:
            description = wanted.snapshot.description
            reason = self._options.set_aside.get(description.store.store)
            if reason is None:
                continue
            reasons.append(f"{description.store}: {reason}")
            found = [
                each for each in self._there[task.task_dir] if each.store == description.store.store
            ]
            places = [name for each in found for name in (each.root, *each.side_files)]
            for name in (*places, description.root):
                if os.path.lexists(task.task_dir / name):
                    paths[name] = None
        return tuple(paths), tuple(reasons)

    def _require_plugins(self, description: Description) -> None:
        name = self._ports.layout.name
        if description.layout != name:
            raise ConfigError(
                f"{description.store} was found by the layout {description.layout!r},"
                f" and this is {name!r}",
                layout=description.layout,
            )
        if description.backend not in self._ports.backends:
            raise PluginError(
                f"there is no backend {description.backend!r}, which {description.store} needs",
                backend=description.backend,
            )

    def _check_generations(self, tasks: Sequence[Task]) -> list[str]:
        """Ask the layout once for each kind of files that is to be brought to an application."""
        kinds = {
            (description.store.application, description.generation, description.store_type): (
                description
            )
            for task in tasks
            for description in (wanted.snapshot.description for wanted in task.wanted)
        }
        layout = self._ports.layout
        return [note for each in kinds.values() for note in layout.check_target(self.target, each)]

    def _discover(self, tasks: Sequence[Task]) -> list[StoreLocation]:
        """Find the stores that the target holds already of the applications concerned."""
        applications = {
            task.description.store.application for task in tasks if task.task_dir.parent.exists()
        }
        discover = self._ports.layout.discover
        found: list[StoreLocation] = []
        for name in applications:
            with suppress(StoreNotFoundError):
                found += discover(self.target, name).locations
        return found

    def _plan_task(self, task: Task, stores: Sequence[StoreLocation]) -> TaskPlan:
        there = [
            PresentStore(store=each.store.store, root=each.root, side_files=each.side_files)
            for each in stores
            if each.task_dir.resolve() == task.task_dir
        ]
        self._there[task.task_dir] = there
        compared = self._compared(task, stores)
        files = [entry for wanted in task.wanted for entry in wanted.manifest.files]
        area = self.areas.get(task.task_dir.parent)
        with nullcontext(area) if area else found_area(self.target, task.task_dir.parent) as found:
            target = look_at_task(task.task_dir, files, there, found)
        return plan_task(
            target,
            task.wanted,
            replace=self._options.replace,
            keep_replaced=self._options.keep_replaced or bool(self._options.set_aside),
            steps=compared,
        )

    def _compared(self, task: Task, found: Sequence[StoreLocation]) -> tuple[Step, ...]:
        present = [each for each in found if each.task_dir.resolve() == task.task_dir]
        restored = [wanted.snapshot.description for wanted in task.wanted]
        return steps(present, restored, self._ports.layout, self._ports.backends)

    def _notes_on(self, task: Task, plan: TaskPlan) -> list[str]:
        notes = [
            f"{wanted.snapshot.description.store}: snapshot {skipped.snapshot_id[:12]} was passed"
            f" over: {skipped.reason}"
            for wanted in task.wanted
            for skipped in wanted.skipped
        ]
        notes += [note for wanted in task.wanted for each in wanted.resume for note in each.notes]
        notes += [
            f"{wanted.snapshot.description.store}: snapshot {wanted.snapshot.id[:12]} is not"
            f" complete: {NOT_COMPLETE}"
            for wanted in task.wanted
            if not wanted.snapshot.description.complete
        ]
        notes += notes_on(plan.steps)
        for wanted in task.wanted:
            notes += told(str(wanted.snapshot.description.store), wanted.accepted)
        store = task.description.store
        if missing := missing_stores(plan, self._stores_in(task)):
            notes.append(
                f"task {store.task} will lack {', '.join(missing)}: under exactly-once the"
                " application wipes such a task and replays all of it"
            )
        return notes + [f"{name} belongs to one host and was left out" for name in plan.left_out]

    def _stores_in(self, task: Task) -> set[str]:
        """Return the stores of which the catalog lists snapshots, and that belong into its folder.

        Where every store has a folder of its own, it is alone there.
        """
        store = task.description.store
        known = self._stores_of(store.application).get(store.task, set())

        def folder(name: str) -> Path:
            other = msgspec.structs.replace(store, store=name)
            description = msgspec.structs.replace(task.description, store=other)
            return self._ports.layout.task_dir(self.target, description)

        loaded = known - {each.store for each in self.in_memory if each.task == store.task}
        return {name for name in loaded if folder(name) == task.task_dir}

    def _stores_of(self, application: str) -> Mapping[str, set[str]]:
        """Return the stores of each task of which the catalog lists snapshots."""
        if application not in self._known:
            known: dict[str, set[str]] = defaultdict(set)
            for listed in self._ports.repository.catalog.list_application(application).snapshots:
                known[listed.store.task].add(listed.store.store)
            self._known[application] = known
        return self._known[application]

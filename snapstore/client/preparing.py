"""Make a state directory ready for the next start: the chain that runs before it."""

import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Literal, overload

from snapstore.client.moments import utc_now
from snapstore.client.opening import open as open_repository
from snapstore.client.parts import state_dir
from snapstore.client.snapstore import Snapstore
from snapstore.client.trust import fsck_options, fsck_ports, newest_in
from snapstore.config import Config
from snapstore.errors import (
    ConfigError,
    IntegrityError,
    RefusedError,
    SnapshotNotFoundError,
    StoreNotFoundError,
)
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Noted, nobody
from snapstore.operations.fsck import FsckPorts
from snapstore.operations.prepare import (
    PrepareOptions,
    PreparePlan,
    PreparePorts,
    PrepareReport,
    plan_prepare,
)
from snapstore.operations.prepare import prepare as make_ready
from snapstore.operations.prepare_plan import Share
from snapstore.operations.restore_report import RestoreReport
from snapstore.ports import Clock, Listener
from snapstore.registry import Registry


@overload
def prepare(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    share: Share | None = None,
    instance: str | None = None,
    bring: bool = True,
    prefer_snapshots: bool = False,
    allow_unchecked_changelog: bool = False,
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: Literal[False] = False,
) -> PrepareReport: ...


@overload
def prepare(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    share: Share | None = None,
    instance: str | None = None,
    bring: bool = True,
    prefer_snapshots: bool = False,
    allow_unchecked_changelog: bool = False,
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: Literal[True],
) -> PreparePlan: ...


def prepare(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    share: Share | None = None,
    instance: str | None = None,
    bring: bool = True,
    prefer_snapshots: bool = False,
    allow_unchecked_changelog: bool = False,
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: bool = False,
) -> PrepareReport | PreparePlan:
    """Look, mend, else restore the newest usable snapshot, else leave it to the application.

    On an empty disk tasks are restored: ``tasks``, a ``share`` of all, or those ever captured at
    ``instance`` (default: the configured one, or the host name), which may be none. The repository
    is opened only where a decision needs it; without one nothing is restored. Where no application
    is named or configured, it is the only one on the disk. With ``dry_run`` the plan is returned.
    Raises ConfigError, StoreInUseError, RefusedError with the choices, UnavailableError.
    """
    settings = config or Config()
    plugins = registry or Registry()
    place = state_dir(settings, directory)
    with fsck_ports(
        settings, plugins, clock, listener, allow_unchecked_changelog=allow_unchecked_changelog
    ) as looking:
        name = application or settings.state.application
        if name is None:
            name = _only_application(looking, place)
        options = PrepareOptions(
            fsck=fsck_options(
                settings, name, (), stores, guarantee=guarantee, version=version, scan=scan
            ),
            tasks=tuple(tasks),
            share=share,
            instance=instance,
            host=settings.state.instance or socket.gethostname(),
            bring=bring,
            prefer_snapshots=prefer_snapshots,
        )
        with ExitStack() as stack:

            def opened() -> Snapstore:
                return stack.enter_context(
                    open_repository(
                        config=settings, clock=clock, registry=plugins, listener=listener
                    )
                )

            snapshots = _Snapshots(opened, name)

            def restore(
                task: str, store: str | None, set_aside: Mapping[str, str]
            ) -> RestoreReport:
                return snapshots.repository.restore(
                    target=place,
                    application=name,
                    task=task,
                    store=store,
                    replace=True,
                    set_aside=set_aside,
                    version=version,
                    allow_unchecked_changelog=allow_unchecked_changelog,
                    listener=listener,
                )

            ports = PreparePorts(
                fsck=looking,
                saved=lambda: snapshots.newest,
                instances_of=snapshots.instances_of,
                restore=restore,
            )
            if settings.repository.url is None:
                ports = _without_repository(looking)
            if dry_run:
                return plan_prepare(place, ports, options)
            return make_ready(place, ports, options)


def _only_application(looking: FsckPorts, place: Path) -> str:
    """Return the application in a state directory, and say so; raises ConfigError unless one is."""
    try:
        tasks = looking.inspector.read_tasks(place, None)
        names = {*looking.inspector.application_dirs(place, None)}
    except StoreNotFoundError:
        tasks, names = (), set()
    names |= {task.application for task in tasks}
    if len(names) == 1:
        (name,) = names
        looking.listener(Noted(message=f"{name} is taken: the only application in {place}"))
        return name
    if names:
        raise ConfigError(
            f"there are {len(names)} applications in {place}, and none was named",
            hint="give --application with one of those below",
            applications=sorted(names),
        )
    raise ConfigError(
        f"no application was named, and there is none in {place}", hint="give --application ID"
    )


def _without_repository(looking: FsckPorts) -> PreparePorts:
    def restore(task: str, store: str | None, set_aside: Mapping[str, str]) -> RestoreReport:
        del set_aside
        raise SnapshotNotFoundError(f"no repository is configured to restore {task}/{store} from")

    return PreparePorts(fsck=looking, saved=dict, instances_of=dict, restore=restore)


class _Snapshots:
    """Those of one application, looked up when a decision first needs them."""

    def __init__(self, opened: Callable[[], Snapstore], application: str) -> None:
        self._opened = opened
        self._application = application

    @cached_property
    def repository(self) -> Snapstore:
        return self._opened()

    @cached_property
    def newest(self) -> Mapping[StoreId, ListedSnapshot]:
        return newest_in(self._listed)

    def instances_of(self) -> Mapping[str, frozenset[str]]:
        """Tell at which instances each task was captured: its store with the most snapshots."""
        by_task: dict[str, dict[StoreId, list[ListedSnapshot]]] = {}
        for listed in self._listed:
            stores = by_task.setdefault(listed.store.task, {})
            stores.setdefault(listed.store, []).append(listed)
        asked = [listed for stores in by_task.values() for listed in max(stores.values(), key=len)]
        found: dict[str, set[str]] = {task: set() for task in by_task}
        with ThreadPoolExecutor(self.repository.config.transfer.parallel, "catalog") as pool:
            for listed, name in zip(asked, pool.map(self._instance_of, asked), strict=True):
                found[listed.store.task] |= {name} if name is not None else set()
        return {task: frozenset(names) for task, names in found.items()}

    @cached_property
    def _listed(self) -> Sequence[ListedSnapshot]:
        return self.repository.repository.catalog.list_application(self._application).snapshots

    def _instance_of(self, listed: ListedSnapshot) -> str | None:
        """Return where it was captured; None where its entry cannot be used any more."""
        try:
            return self.repository.load(listed).description.instance
        except (SnapshotNotFoundError, IntegrityError, RefusedError):
            return None

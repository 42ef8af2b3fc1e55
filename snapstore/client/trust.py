"""Tell whether a state directory can be trusted, and mend it; needs no repository."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, TypeVar, overload

from snapstore.client.moments import utc_now
from snapstore.client.parts import (
    ConfiguredBackends,
    changelog_unless_away,
    configured_changelog,
    configured_layout,
    configured_storage,
    state_dir,
)
from snapstore.client.remembered import lineage_of
from snapstore.config import Config
from snapstore.errors import ConfigError, IntegrityError, NotFoundError, UnavailableError
from snapstore.model.identity import StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Noted, nobody
from snapstore.operations.fsck import FsckOptions, FsckPorts
from snapstore.operations.fsck import fsck as look_at
from snapstore.operations.fsck_report import FsckReport
from snapstore.operations.mend import MendReport
from snapstore.operations.mend import mend as mend_stores
from snapstore.operations.mend_plan import MendPlan, plan_mend
from snapstore.operations.nearby import pointing
from snapstore.operations.prepare_plan import quicker_snapshots
from snapstore.operations.topic_history import Fences, known_fences
from snapstore.ports import Clock, Listener, StartInspector
from snapstore.registry import Registry
from snapstore.repository import Catalog, Repository

K = TypeVar("K")
V = TypeVar("V")


def fsck(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
) -> FsckReport:
    """Say of every store below a state directory what its application will do at the next start.

    Reads only, and may be run beside the application. ``guarantee`` is its `processing.guarantee`
    and ``version`` that of Kafka Streams: what is not given is told from the files, or the worst is
    assumed. ``scan`` reads every block. With Kafka configured the changelogs are looked at, and
    with a repository too, whether they were created again. Raises ConfigError,
    StoreNotFoundError, CaptureError, StoreChangedError or KafkaError.
    """
    settings = config or Config()
    plugins = registry or Registry()
    options = fsck_options(
        settings, application, tasks, stores, guarantee=guarantee, version=version, scan=scan
    )
    place, layout = state_dir(settings, directory), configured_layout(settings, plugins)
    with (
        fsck_ports(settings, plugins, clock, listener) as ports,
        pointing(place, layout, options.application),
    ):
        return look_at(place, ports, options)


@overload
def mend(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: Literal[False] = False,
) -> MendReport: ...


@overload
def mend(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: Literal[True],
) -> MendPlan: ...


def mend(
    directory: Path | str | None = None,
    *,
    config: Config | None = None,
    application: str | None = None,
    tasks: Sequence[str] = (),
    stores: Sequence[str] = (),
    guarantee: str | None = None,
    version: str | None = None,
    scan: bool = False,
    listener: Listener = nobody,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    dry_run: bool = False,
) -> MendReport | MendPlan:
    """Mend what ``fsck`` finds, with the application stopped; with ``dry_run`` return the plan.

    Nothing is deleted: what cannot be trusted is moved to `.snapstore/quarantine` in the directory
    of the application. A directory that needs nothing is not touched. Raises StoreInUseError when
    the application runs, and what ``operations.mend`` names.
    """
    settings = config or Config()
    plugins = registry or Registry()
    options = fsck_options(
        settings, application, tasks, stores, guarantee=guarantee, version=version, scan=scan
    )
    place, layout = state_dir(settings, directory), configured_layout(settings, plugins)
    with (
        fsck_ports(settings, plugins, clock, listener) as ports,
        pointing(place, layout, options.application),
    ):
        if dry_run:
            report = look_at(place, ports, options)
            plan = plan_mend(report)
            saved = _asked(
                settings, plugins, listener, lambda catalog: newest_of(catalog, options.application)
            )
            for sentence in quicker_snapshots(plan, saved, report.bounds):
                listener(Noted(message=sentence))
            return plan
        return mend_stores(place, ports, options)


def fsck_options(
    config: Config,
    application: str | None,
    tasks: Sequence[str],
    stores: Sequence[str],
    *,
    guarantee: str | None,
    version: str | None,
    scan: bool,
) -> FsckOptions:
    """Return what was asked for, and what the configuration says where it was not."""
    return FsckOptions(
        application=application or config.state.application,
        tasks=tuple(tasks),
        stores=tuple(stores),
        guarantee=guarantee or config.state.guarantee,
        version=version,
        scan=scan,
    )


@contextmanager
def fsck_ports(
    config: Config,
    registry: Registry,
    clock: Clock,
    listener: Listener,
    *,
    allow_unchecked_changelog: bool = False,
) -> Iterator[FsckPorts]:
    """Yield what a look needs; the changelogs where Kafka is configured.

    With ``allow_unchecked_changelog`` brokers that do not answer are no error.
    """

    def fences(catalog: Catalog) -> Fences:
        return fences_of(catalog, config.state.application)

    opened = (
        changelog_unless_away(config, registry, listener)
        if allow_unchecked_changelog
        else configured_changelog(config, registry)
    )
    with opened as changelog:
        yield FsckPorts(
            inspector=configured_inspector(config, registry),
            backends=ConfiguredBackends(config, registry),
            clock=clock,
            listener=listener,
            changelog=changelog,
            accepted=lineage_of(config).accepted,
            fences={} if changelog is None else _asked(config, registry, listener, fences),
        )


def configured_inspector(config: Config, registry: Registry) -> StartInspector:
    """Return the layout as one that foretells a start; raises ConfigError where it cannot."""
    layout = configured_layout(config, registry)
    if not isinstance(layout, StartInspector):
        raise ConfigError(
            f"the layout {config.state.layout} does not tell how its application starts",
            hint="fsck and prepare are for the layout kafka-streams",
            key="state.layout",
        )
    return layout


def newest_of(catalog: Catalog, application: str | None) -> dict[StoreId, ListedSnapshot]:
    """Return the newest snapshot with a changelog of each store, or of those of an application."""
    return newest_in(_listed(catalog, application))


def newest_in(snapshots: Iterable[ListedSnapshot]) -> dict[StoreId, ListedSnapshot]:
    """Return the newest snapshot with a changelog of each store; they come newest first."""
    newest: dict[StoreId, ListedSnapshot] = {}
    for listed in snapshots:
        if listed.changelogs:
            newest.setdefault(listed.store, listed)
    return newest


def fences_of(catalog: Catalog, application: str | None) -> Fences:
    """Return the fences of each store, the last of each topic, by changelog partition."""
    by_store: dict[StoreId, list[ListedSnapshot]] = {}
    for listed in _listed(catalog, application):
        by_store.setdefault(listed.store, []).append(listed)
    return {
        changelog: fences
        for snapshots in by_store.values()
        for changelog, fences in known_fences(catalog, snapshots).items()
    }


def _listed(catalog: Catalog, application: str | None) -> Sequence[ListedSnapshot]:
    listing = catalog.list_all() if application is None else catalog.list_application(application)
    return listing.snapshots


def _asked(
    config: Config,
    registry: Registry,
    listener: Listener,
    question: Callable[[Catalog], Mapping[K, V]],
) -> Mapping[K, V]:
    """Ask the catalog; an empty answer without a repository, or with one that cannot be read.

    The latter is told. Nothing that is decided here hangs on it: it only says more.
    """
    if config.repository.url is None:
        return {}
    with closing(configured_storage(config, registry, listener)) as storage:
        try:
            return question(Repository.open(storage).catalog)
        except (UnavailableError, NotFoundError, IntegrityError) as error:
            listener(Noted(message=f"{error.message}: what the snapshots know is left out"))
            return {}

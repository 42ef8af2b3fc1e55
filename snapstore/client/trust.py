"""Tell whether a state directory can be trusted; needs no repository."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from snapstore.client.catalog import utc_now
from snapstore.client.parts import (
    ConfiguredBackends,
    configured_changelog,
    configured_layout,
    configured_storage,
    state_dir,
)
from snapstore.config import Config
from snapstore.errors import ConfigError, NotFoundError, UnavailableError
from snapstore.model.report import Event, Noted
from snapstore.operations.fsck import Fences, FsckOptions, FsckPorts
from snapstore.operations.fsck import fsck as look_at
from snapstore.operations.fsck_report import FsckReport
from snapstore.ports import Clock, Listener, StartInspector
from snapstore.registry import Registry
from snapstore.repository import Repository


def _nobody(event: Event) -> None:
    """The listener where none is given."""
    del event


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
    listener: Listener = _nobody,
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
    options = FsckOptions(
        application=application or settings.state.application,
        tasks=tuple(tasks),
        stores=tuple(stores),
        guarantee=guarantee or settings.state.guarantee,
        version=version,
        scan=scan,
    )
    with configured_changelog(settings, plugins) as changelog:
        ports = FsckPorts(
            inspector=configured_inspector(settings, plugins),
            backends=ConfiguredBackends(settings, plugins),
            clock=clock,
            listener=listener,
            changelog=changelog,
            fences={} if changelog is None else known_fences(settings, plugins, listener),
        )
        return look_at(state_dir(settings, directory), ports, options)


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


def known_fences(config: Config, registry: Registry, listener: Listener) -> Fences:
    """Return the fence of the newest snapshot of each store, by changelog partition.

    Without a repository there are none; one that cannot be read is told of, and there are none.
    """
    if config.repository.url is None:
        return {}
    fences = {}
    try:
        with closing(configured_storage(config, registry)) as storage:
            catalog = Repository.open(storage).catalog
            seen = set()
            for listed in catalog.list_all().snapshots:
                if listed.store in seen or not listed.changelogs:
                    continue
                seen.add(listed.store)
                for each in catalog.load(listed).description.positions:
                    if each.fence is not None:
                        fences[each.position.changelog] = each.fence
    except (UnavailableError, NotFoundError) as error:
        message = f"{error.message}: a changelog that was created again would not be noticed"
        listener(Noted(message=message))
        return {}
    return fences

"""The plug-ins of one run, made from the configuration when they are first asked for."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import msgspec

from snapstore.config import Config
from snapstore.config.schema import StoreConfig
from snapstore.errors import ConfigError, UnavailableError
from snapstore.model.home import expanded
from snapstore.model.report import Noted, nobody
from snapstore.ports import (
    Changelog,
    Discovery,
    Layout,
    Listener,
    ObjectStorage,
    ReachableChangelog,
    StoreBackend,
    TellingStorage,
    WatchingLayout,
)
from snapstore.registry import BUILT_IN, Registry


class ConfiguredBackends(Mapping[str, StoreBackend]):
    """Backends by name. A name that is none raises PluginError with near ones."""

    def __init__(self, config: Config, registry: Registry) -> None:
        self._config = config
        self._registry = registry
        self._made: dict[str, StoreBackend] = {}

    def __getitem__(self, name: str) -> StoreBackend:
        if name not in self._made:
            options = self._config.backends.get(name, {})
            self._made[name] = self._registry.backend(name, options)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**BUILT_IN["backends"], **self._config.backends})

    def __len__(self) -> int:
        return len({**BUILT_IN["backends"], **self._config.backends})


class ConfiguredLayout:
    """A layout whose stores are as the section ``stores`` says: skipped, or of another backend."""

    def __init__(self, layout: Layout, stores: Mapping[str, StoreConfig]) -> None:
        self.layout = layout
        self._stores = stores

    def __getattr__(self, name: str) -> Any:
        return getattr(self.layout, name)

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        found = self.layout.discover(state_dir, application)
        kept, notes = [], [*found.notes]
        for location in found.locations:
            store = self._stores.get(location.store.store, StoreConfig())
            if store.skip:
                notes.append(f"{location.store} is left out: stores.{location.store.store}.skip")
            elif store.backend is not None:
                kept.append(msgspec.structs.replace(location, backend=store.backend))
            else:
                kept.append(location)
        unread = tuple(
            each
            for each in found.unread
            if not self._stores.get(each.store.store, StoreConfig()).skip
        )
        return Discovery(locations=tuple(kept), notes=tuple(notes), unread=unread)


def configured_layout(config: Config, registry: Registry, name: str | None = None) -> Layout:
    """Make the layout of that name, or the configured one."""
    chosen = name or config.state.layout
    layout = registry.layout(chosen, layout_options(config, registry, chosen))
    return cast("Layout", ConfiguredLayout(layout, config.stores))


def watching_locks(layout: Layout) -> AbstractContextManager[None]:
    """Make it cheap to ask the layout who is in use, where it can do that."""
    asked = layout.layout if isinstance(layout, ConfiguredLayout) else layout
    return asked.watching_locks() if isinstance(asked, WatchingLayout) else nullcontext()


def layout_options(config: Config, registry: Registry, name: str) -> dict[str, object]:
    """Return the settings of a layout: its own, and what other sections say that it can take.

    Raises ConfigError when such a key is set and the layout has no use for it.
    """
    options = dict(config.state.options) if name == config.state.layout else {}
    known = {field.name for field in msgspec.structs.fields(registry.options_type("layouts", name))}
    topics = {
        store: each.changelog for store, each in config.stores.items() if each.changelog is not None
    }
    rules = {store: each.rules for store, each in config.stores.items() if each.rules}
    for key, field, value in (
        ("state.guarantee", "guarantee", config.state.guarantee),
        ("stores.<name>.format", "rules", rules),
        ("stores.<name>.changelog", "changelogs", topics),
    ):
        if value in ("auto", {}):
            continue
        if field in known:
            options[field] = value
        elif name == config.state.layout:
            raise ConfigError(f"the layout {name} has no use for {key}", key=key)
    return options


def configured_storage(
    config: Config, registry: Registry, listener: Listener = nobody
) -> ObjectStorage:
    """Make the storage of the configured repository; raises ConfigError when none is.

    ``listener`` hears what it has to say while it works.
    """
    if config.repository.url is None:
        raise ConfigError(
            "no repository was named",
            hint="give --repository URL, set SNAPSTORE_REPOSITORY, or write repository.url",
            key="repository.url",
        )
    storage = registry.storage(config.repository.url, config.repository.options)
    if isinstance(storage, TellingStorage):
        storage.listen(listener)
    return storage


@contextmanager
def configured_changelog(config: Config, registry: Registry) -> Iterator[Changelog | None]:
    """Yield a reader of the configured cluster's changelogs; None where none is configured."""
    if config.kafka.bootstrap is None:
        yield None
        return
    with closing(registry.changelog(config.kafka.bootstrap, config.kafka.properties)) as changelog:
        yield changelog


@contextmanager
def changelog_unless_away(
    config: Config, registry: Registry, listener: Listener
) -> Iterator[Changelog | None]:
    """As ``configured_changelog``; where the brokers do not answer, None, and that is told.

    For those who were told to go on without the changelog.
    """
    with configured_changelog(config, registry) as changelog:
        reached: Changelog | None = changelog
        if isinstance(changelog, ReachableChangelog):
            try:
                changelog.reach()
            except UnavailableError as error:
                listener(Noted(message=f"the changelog is not looked at: {error.message}"))
                reached = None
        yield reached


def state_dir(config: Config, given: Path | str | None = None) -> Path:
    """Return the state directory that was given or is configured.

    Raises ConfigError when there is none, and when it is something else than a directory.
    """
    chosen = given if given is not None else config.state.dir
    if chosen is None:
        raise ConfigError(
            "no state directory was named",
            hint="name it on the command line, set SNAPSTORE_STATE_DIR, or write state.dir",
            key="state.dir",
        )
    place = expanded(chosen)
    if place.is_file():
        raise ConfigError(f"{place} is not a directory", path=str(place))
    return place

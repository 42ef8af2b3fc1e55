"""Make or open a repository from a URL or a configuration."""

import os
from collections.abc import Mapping

import msgspec

from snapstore.client.moments import run_id, utc_now
from snapstore.client.parts import configured_storage, layout_options
from snapstore.client.snapstore import Snapstore
from snapstore.config import Config, load_config
from snapstore.model.report import Noted, nobody
from snapstore.model.repository_url import keeps_options, url_scheme
from snapstore.ports import Clock, Listener
from snapstore.registry import Registry
from snapstore.repository import Repository


def create(
    url: str | None = None,
    *,
    config: Config | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    listener: Listener = nobody,
) -> Snapstore:
    """Make a repository at a URL, or where the configuration says, and open it.

    Without ``config`` the environment (``env``: another) and the usual files are read. ``listener``
    hears what the storage has to say, now and later, from any thread. Raises RepositoryExistsError,
    ConflictError when something else is there, StorageUnfitError when the storage cannot keep the
    promises a repository needs, or ConfigError.
    """
    settings = _settings(url, config, env)
    plugins = registry or Registry()
    storage = configured_storage(settings, plugins, listener)
    try:
        repository = Repository.create(
            storage,
            created_at=clock(),
            accept_unverified_uploads=settings.repository.accept_unverified_uploads,
        )
    except BaseException:
        storage.close()
        raise
    return Snapstore(settings, repository, registry=plugins, clock=clock)


def open(  # noqa: A001
    url: str | None = None,
    *,
    config: Config | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    listener: Listener = nobody,
) -> Snapstore:
    """Open the repository at a URL, or where the configuration says.

    Without ``config`` the environment (``env``: another) and the usual files are read. ``listener``
    hears what the storage has to say, now and later, from any thread. Raises
    RepositoryNotFoundError, ConfigError, or UnavailableError.
    """
    settings = _settings(url, config, env)
    plugins = registry or Registry()
    storage = configured_storage(settings, plugins, listener)
    try:
        repository = Repository.open(storage)
    except BaseException:
        storage.close()
        raise
    return Snapstore(settings, repository, registry=plugins, clock=clock)


def open_to_repair(
    url: str | None = None,
    *,
    config: Config | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    registry: Registry | None = None,
    listener: Listener = nobody,
    dry_run: bool = False,
) -> Snapstore:
    """Open a repository whose ``snapstore.json`` may be lost or damaged: it is put back first.

    What was done is told to ``listener``; with ``dry_run`` nothing is written. Raises what ``open``
    raises, and ManifestInvalidError where the place may be something else.
    """
    # Imported here: a repository is repaired seldom.
    from snapstore.operations.repair_marker import recover_marker

    settings = _settings(url, config, env)
    plugins = registry or Registry()
    storage = configured_storage(settings, plugins, listener)
    try:
        now = clock()
        recovered = recover_marker(storage, run=run_id(now), now=now, dry_run=dry_run)
    except BaseException:
        storage.close()
        raise
    if recovered.note is not None:
        listener(Noted(message=recovered.note))
    repository = Repository(storage, recovered.marker)
    return Snapstore(settings, repository, registry=plugins, clock=clock)


def check(config: Config, registry: Registry | None = None) -> list[str]:
    """Check that the plug-ins which the configuration names exist and accept their options.

    Returns a sentence for each. Nothing is connected to. Raises PluginError or ConfigError.
    """
    plugins = registry or Registry()
    checked = []
    if config.repository.url is not None:
        scheme = url_scheme(config.repository.url)
        plugins.check("storages", scheme, config.repository.options, "repository.options")
        checked.append(f"the storage {scheme} accepts its options")
    layout = config.state.layout
    plugins.check("layouts", layout, layout_options(config, plugins, layout), "state.options")
    checked.append(f"the layout {layout} accepts its options")
    if "guarantee" in _option_names(plugins, layout):
        checked.append(_on_guarantee(config))
    for name, options in config.backends.items():
        plugins.check("backends", name, options, f"backends.{name}")
        checked.append(f"the backend {name} accepts its options")
    for store in config.stores.values():
        if store.backend is not None:
            plugins.options_type("backends", store.backend)
    return checked


def _option_names(plugins: Registry, layout: str) -> set[str]:
    fields = msgspec.structs.fields(plugins.options_type("layouts", layout))
    return {field.name for field in fields}


def _on_guarantee(config: Config) -> str:
    """Say how the application's processing guarantee will be known."""
    if config.state.guarantee != "auto":
        return f"state.guarantee is {config.state.guarantee}"
    if config.kafka.bootstrap is not None:
        return "state.guarantee is auto: it is found out from the files and the changelogs"
    return (
        "state.guarantee is auto, and without Kafka only the files can tell it: write at_least_once"
        " (Kafka's default) or exactly_once_v2, whichever the application's processing.guarantee is"
    )


def _settings(url: str | None, config: Config | None, env: Mapping[str, str] | None) -> Config:
    if config is None:
        overrides = {"repository.url": (url, "url")} if url is not None else {}
        return load_config(env=os.environ if env is None else env, overrides=overrides)
    if url is None:
        return config
    kept = keeps_options(url, config.repository.url)
    repository = msgspec.structs.replace(
        config.repository, url=url, options=config.repository.options if kept else {}
    )
    sections = msgspec.structs.replace(config.sections, repository=repository)
    origins = {**config.origins, "repository.url": "option url"}
    return msgspec.structs.replace(config, sections=sections, origins=origins)

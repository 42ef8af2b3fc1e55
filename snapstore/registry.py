"""Plug-ins by name: built-in storages, backends and layouts, and those of other distributions.

A plug-in is a class with a struct ``Options`` (its settings, frozen msgspec.Struct) that is made
from an instance of it: ``Backend(options)``, ``Layout(options)``; a storage gets its URL first,
``Storage(url, options)``. ``ports_version`` says for which version of the ports it was written.
Other distributions announce theirs as entry points in the groups ``snapstore.storages`` (the name
is the URL scheme), ``snapstore.backends`` and ``snapstore.layouts``. They are looked for only when
a name is not built in, and nobody can take a name that is.
"""

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from snapstore.errors import PluginError
from snapstore.model.repository_url import url_scheme
from snapstore.model.strict import decode, nearest_hint
from snapstore.ports import VERSION, Changelog, Layout, ObjectStorage, StoreBackend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["storages", "backends", "layouts"]

BUILT_IN: Final[Mapping[Kind, Mapping[str, str]]] = {
    "storages": {
        "file": "snapstore.storages.local:LocalStorage",
        "s3": "snapstore.storages.s3:S3Storage",
    },
    "backends": {
        "files": "snapstore.backends.files:FilesBackend",
        "memory": "snapstore.backends.memory:MemoryBackend",
        "rocksdb": "snapstore.backends.rocksdb:RocksDBBackend",
    },
    "layouts": {
        "faust": "snapstore.layouts.faust:FaustLayout",
        "kafka-streams": "snapstore.layouts.kafka_streams:KafkaStreamsLayout",
        "plain": "snapstore.layouts.plain:PlainLayout",
        "quix": "snapstore.layouts.quix:QuixLayout",
    },
}

CHANGELOG: Final = "snapstore.kafka.changelog:KafkaChangelog"

_SINGULAR: Final[Mapping[Kind, str]] = {
    "storages": "storage",
    "backends": "backend",
    "layouts": "layout",
}


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a plug-in that has none."""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """One plug-in that can be named; ``error`` says why it cannot be used."""

    kind: Kind
    name: str
    origin: str
    target: str
    error: str | None = None


def installed(group: str) -> "Iterable[EntryPoint]":
    """Return the entry points that the installed distributions announce in a group."""
    # Imported here: it takes longer to load than all the rest of this module.
    from importlib.metadata import entry_points

    return entry_points(group=group)


class Registry:
    """Finds, loads and makes plug-ins. ``find`` returns the entry points of a group."""

    def __init__(self, find: "Callable[[str], Iterable[EntryPoint]]" = installed) -> None:
        self._find = find
        self._classes: dict[tuple[Kind, str], type[Any]] = {}

    def storage(self, url: str, options: Mapping[str, object]) -> ObjectStorage:
        """Make the storage for a URL; a path without a scheme is a local folder.

        Raises PluginError for an unknown or broken one, ConfigError for bad options or URL.
        """
        scheme = url_scheme(url)
        cls, decoded = self._prepared("storages", scheme, options, "repository.options")
        storage: ObjectStorage = cls(url, decoded)
        return storage

    def backend(self, name: str, options: Mapping[str, object]) -> StoreBackend:
        """Make the backend of that name; raises PluginError or ConfigError."""
        cls, decoded = self._prepared("backends", name, options, f"backend {name}")
        backend: StoreBackend = cls(decoded)
        return backend

    def layout(self, name: str, options: Mapping[str, object]) -> Layout:
        """Make the layout of that name; raises PluginError or ConfigError."""
        cls, decoded = self._prepared("layouts", name, options, f"layout {name}")
        layout: Layout = cls(decoded)
        return layout

    def changelog(self, bootstrap: str, properties: Mapping[str, object]) -> Changelog:
        """Make a reader of the changelogs of a cluster; raises PluginError or ConfigError."""
        module, _, attribute = CHANGELOG.partition(":")
        try:
            cls = getattr(importlib.import_module(module), attribute)
        except ImportError as exc:
            raise PluginError(
                f"the Kafka client cannot be loaded: {exc}", hint="install confluent-kafka"
            ) from exc
        changelog: Changelog = cls(bootstrap, properties)
        return changelog

    def options_type(self, kind: Kind, name: str) -> type[msgspec.Struct]:
        """Return the struct that holds the settings of a plug-in."""
        options: type[msgspec.Struct] = getattr(self._class(kind, name), "Options", NoOptions)
        return options

    def check(self, kind: Kind, name: str, options: Mapping[str, object], path: str) -> None:
        """Load a plug-in and decode its options, which stand at ``path`` in the configuration.

        Raises PluginError or ConfigError.
        """
        self._prepared(kind, name, options, path)

    def plugins(self) -> list[Plugin]:
        """Return every plug-in there is; the broken ones say why, the others go on."""
        found = []
        for kind, table in BUILT_IN.items():
            announced = self._announced(kind)
            for name in sorted({*table, *announced}):
                points = announced.get(name, [])
                target = table.get(name) or points[0].value
                error = None
                try:
                    self._class(kind, name)
                    if name in table and points:
                        raise _taken_twice(kind, name, points, built_in=True)
                except PluginError as exc:
                    error = exc.message
                origin = "built in" if name in table else _distribution(points[0])
                found.append(
                    Plugin(kind=kind, name=name, origin=origin, target=target, error=error)
                )
        return found

    def _prepared(
        self, kind: Kind, name: str, options: Mapping[str, object], path: str
    ) -> tuple[type[Any], msgspec.Struct]:
        cls = self._class(kind, name)
        return cls, decode(dict(options), getattr(cls, "Options", NoOptions), path=path)

    def _class(self, kind: Kind, name: str) -> type[Any]:
        if (kind, name) not in self._classes:
            self._classes[kind, name] = self._loaded(kind, name)
        return self._classes[kind, name]

    def _loaded(self, kind: Kind, name: str) -> type[Any]:
        target = BUILT_IN[kind].get(name)
        origin = "built in"
        if target is None:
            announced = self._announced(kind)
            points = announced.get(name, [])
            if not points:
                raise PluginError(
                    f"no {_SINGULAR[kind]} is called {name!r}",
                    hint=nearest_hint(name, [*BUILT_IN[kind], *announced]),
                    kind=_SINGULAR[kind],
                    name=name,
                )
            if len(points) > 1:
                raise _taken_twice(kind, name, points, built_in=False)
            target, origin = points[0].value, _distribution(points[0])
        module, _, attribute = target.partition(":")
        # A foreign module may raise anything; in one of our own only a missing driver is expected.
        broken = ImportError if name in BUILT_IN[kind] else Exception
        try:
            cls = getattr(importlib.import_module(module), attribute)
        except broken as exc:
            raise PluginError(
                f"the {_SINGULAR[kind]} {name!r} cannot be loaded: {type(exc).__name__}: {exc}",
                hint=f"it is {target} ({origin})",
                kind=_SINGULAR[kind],
                name=name,
                target=target,
            ) from exc
        if not isinstance(cls, type):
            raise PluginError(f"{target} is no class", kind=_SINGULAR[kind], name=name)
        written_for = getattr(cls, "ports_version", VERSION)
        if written_for != VERSION:
            raise PluginError(
                f"the {_SINGULAR[kind]} {name!r} was written for version {written_for} of"
                f" snapstore.ports, and this is {VERSION}",
                hint=f"install a version of {origin} that fits this snapstore",
                kind=_SINGULAR[kind],
                name=name,
            )
        return cls

    def _announced(self, kind: Kind) -> "dict[str, list[EntryPoint]]":
        by_name: dict[str, list[EntryPoint]] = defaultdict(list)
        for point in self._find(f"snapstore.{kind}"):
            by_name[point.name].append(point)
        return dict(by_name)


def _taken_twice(
    kind: Kind, name: str, points: "list[EntryPoint]", *, built_in: bool
) -> PluginError:
    owners = ["snapstore itself"] if built_in else []
    owners += sorted(_distribution(point) for point in points)
    return PluginError(
        f"the {_SINGULAR[kind]} name {name!r} is claimed by {' and '.join(owners)}",
        hint="uninstall all but one of them",
        kind=_SINGULAR[kind],
        name=name,
    )


def _distribution(point: "EntryPoint") -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unnamed distribution"

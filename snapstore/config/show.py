"""List the configuration in force, without its secrets."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

import msgspec

from snapstore.config.schema import Config
from snapstore.config.secrets import (
    HIDDEN,
    is_hidden,
    is_secret,
    queries,
    userinfo,
    without_queries,
    without_userinfo,
)
from snapstore.model.units import spell_duration


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One value in force: dotted key, value fit to be shown, and who set it."""

    key: str
    value: str | int | float | bool | None
    origin: str


def settings(config: Config) -> list[Setting]:
    """Return every setting in the order of the sections; secrets read ``(hidden)``."""
    return [
        Setting(key=key, value=shown(key, value), origin=config.origin(key))
        for key, value in _flat(msgspec.structs.asdict(config.sections), "")
    ]


def secret_values(config: Config) -> list[str]:
    """Return every secret that the configuration holds, so that it can be kept out of output."""
    found = []
    for key, value in _flat(msgspec.structs.asdict(config.sections), ""):
        if isinstance(value, str) and value:
            if is_secret(key, value):
                found.append(value)
            found += userinfo(value) + queries(value)
    return found


def shown(key: str, value: object) -> str | int | float | bool | None:
    """Return a value as it may be printed: no secret, no credentials inside a URL."""
    if value is None or isinstance(value, bool):
        return value
    if is_hidden(key):
        return HIDDEN
    if isinstance(value, int | float):
        return value
    if isinstance(value, timedelta):
        return spell_duration(value)
    return without_queries(without_userinfo(str(value)))


def _flat(values: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, msgspec.Struct):
            yield from _flat(msgspec.structs.asdict(value), f"{key}.")
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value

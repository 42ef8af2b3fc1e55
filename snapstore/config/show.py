"""List the configuration in force, without its secrets."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta

import msgspec

from snapstore.config.schema import Config
from snapstore.model.units import spell_duration

HIDDEN = "(hidden)"
_SECRET = re.compile(r"passw|secret|key|token|jaas|credential", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


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
            if _is_secret(key):
                found.append(value)
            found += [match.removesuffix("@") for match in _USERINFO.findall(value)]
    return found


def shown(key: str, value: object) -> str | int | float | bool | None:
    """Return a value as it may be printed: no secret, no credentials inside a URL."""
    if value is None or isinstance(value, bool):
        return value
    if _is_secret(key):
        return HIDDEN
    if isinstance(value, int | float):
        return value
    if isinstance(value, timedelta):
        return spell_duration(value)
    return without_userinfo(str(value))


def without_userinfo(text: str) -> str:
    """Return the text with ``user:password@`` taken out of every URL in it."""
    return _USERINFO.sub(f"{HIDDEN}@", text)


def _is_secret(key: str) -> bool:
    """Whether a key of those that are passed on to others speaks of a secret."""
    if not key.startswith(
        ("kafka.properties.", "repository.options.", "stores.", "state.options.")
    ):
        return False
    return _SECRET.search(re.split(r"properties\.|options\.", key)[-1]) is not None


def _flat(values: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, msgspec.Struct):
            yield from _flat(msgspec.structs.asdict(value), f"{key}.")
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value

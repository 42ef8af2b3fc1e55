"""Put the configuration together: option > environment > file > default."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from snapstore.config.file import read_file
from snapstore.config.schema import Config, Sections
from snapstore.config.secrets import is_address, speaks_of_a_secret, userinfo
from snapstore.config.trust import require_no_code, require_own
from snapstore.errors import ConfigError
from snapstore.model.home import expanded
from snapstore.model.repository_url import keeps_options
from snapstore.model.strict import decode

ENVIRONMENT: Final = {
    "SNAPSTORE_REPOSITORY": "repository.url",
    "SNAPSTORE_STATE_DIR": "state.dir",
    "SNAPSTORE_LAYOUT": "state.layout",
    "SNAPSTORE_APPLICATION": "state.application",
    "SNAPSTORE_INSTANCE": "state.instance",
    "SNAPSTORE_GUARANTEE": "state.guarantee",
    "SNAPSTORE_CACHE_DIR": "state.cache_dir",
    "SNAPSTORE_KAFKA_BOOTSTRAP": "kafka.bootstrap",
}
"""Every variable that is read, with the key it sets; ``SNAPSTORE_CONFIG`` names the file."""

GONE: Final = {
    "snapshot.confirm_after": "the repository is asked in every run",
}
"""Keys that older versions read, with what holds now. They are passed over and noted: a file that
was right yesterday stops nobody from restoring today."""

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def load_config(
    path: Path | str | None = None,
    *,
    env: Mapping[str, str],
    overrides: Mapping[str, tuple[object, str]] | None = None,
) -> Config:
    """Return the configuration in force.

    ``path`` is a file that must exist; without it the first of ``$SNAPSTORE_CONFIG``,
    ``./snapstore.yaml`` and ``~/.config/snapstore/config.yaml`` is read, or none.
    ``overrides`` maps dotted keys to a value and the name of who set it (``--repository``).
    Raises ConfigError with the path of the field, the nearest known key, or the unset variable.
    """
    file = _find(path, env)
    raw: dict[str, object] = {}
    origins: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    if file is not None:
        if not _is_named(path, env):
            require_own(file)
        written = read_file(file)
        if not _is_named(path, env):
            require_no_code(written, file)
        notes = tuple(_without_gone(written, file))
        for name, value in written.items():
            raw[name] = _expanded(value, env, name)
        origins.update({key: str(file) for key in _leaves(raw)})
    for variable, key in ENVIRONMENT.items():
        if env.get(variable):
            _replace(raw, origins, key, env[variable])
            origins[key] = f"environment {variable}"
    for key, (value, setter) in (overrides or {}).items():
        _replace(raw, origins, key, value)
        origins[key] = f"option {setter}"
    try:
        sections = decode(raw, Sections)
    except ConfigError as exc:
        origin = origins.get(str(exc.facts.get("key")))
        if origin is not None and "origin" not in exc.facts:
            exc.facts["origin"] = origin
        elif file is not None:
            exc.facts["origin"] = str(file)
        raise
    _require_plain_addresses(raw, "", origins)
    return Config(sections=sections, origins=origins, path=file, notes=notes)


def _is_named(path: Path | str | None, env: Mapping[str, str]) -> bool:
    return bool(path or env.get("SNAPSTORE_CONFIG"))


def _find(path: Path | str | None, env: Mapping[str, str]) -> Path | None:
    """Return the file to read; one that was named must exist, the usual places need not."""
    for named, origin in ((path, None), (env.get("SNAPSTORE_CONFIG"), "SNAPSTORE_CONFIG")):
        if named:
            file = expanded(named)
            if not file.is_file():
                raise ConfigError(
                    f"no configuration file at {file}",
                    hint=f"unset {origin}, or write the file: snapstore init --write-config {file}"
                    if origin
                    else f"write one: snapstore init --write-config {file}",
                    path=str(file),
                )
            return file
    usual = [Path("snapstore.yaml")]
    if env.get("XDG_CONFIG_HOME"):
        usual.append(Path(env["XDG_CONFIG_HOME"], "snapstore/config.yaml"))
    elif env.get("HOME"):
        usual.append(Path(env["HOME"], ".config/snapstore/config.yaml"))
    return next((file for file in usual if file.is_file()), None)


def _expanded(value: object, env: Mapping[str, str], key: str) -> object:
    """Return ``value`` with each ``${NAME}`` in its texts replaced; ``$${`` is a plain ``${``."""
    if isinstance(value, dict):
        return {name: _expanded(inner, env, f"{key}.{name}") for name, inner in value.items()}
    if isinstance(value, list):
        return [_expanded(inner, env, f"{key}[{i}]") for i, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replaced(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        name = match[2]
        if is_address(key) and speaks_of_a_secret(name):
            raise ConfigError(
                f"{key} says where requests go, and would send ${{{name}}} there",
                hint="credentials come from the AWS environment, or from kafka.properties",
                key=key,
            )
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{key}: ${{{name}}} is not the name of a variable",
                hint="write $${ for the two characters as they are",
                key=key,
            )
        if name not in env:
            raise ConfigError(f"{key}: the environment variable {name} is not set", key=key)
        return env[name]

    return _REFERENCE.sub(replaced, value)


def _without_gone(raw: dict[str, object], file: Path) -> Iterator[str]:
    """Take the keys of older versions out; yield a sentence on each."""
    for key, now in GONE.items():
        section, _, name = key.partition(".")
        inner = raw.get(section)
        if isinstance(inner, dict) and name in inner:
            del inner[name]
            yield f"{key} does nothing any more: {now}; take it out of {file}"


def _replace(raw: dict[str, object], origins: dict[str, str], dotted: str, value: object) -> None:
    """Set a value from outside the file; options of a repository of another kind go with it."""
    repository = raw.get("repository")
    if (
        dotted == "repository.url"
        and isinstance(repository, dict)
        and not keeps_options(str(value), repository.get("url"))
    ):
        repository.pop("options", None)
        for key in [key for key in origins if key.startswith("repository.options")]:
            del origins[key]
    _set(raw, dotted, value)


def _require_plain_addresses(
    raw: Mapping[str, object], prefix: str, origins: Mapping[str, str]
) -> None:
    """Raise ConfigError for an address with a user and a password in it."""
    for name, value in raw.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            _require_plain_addresses(value, f"{key}.", origins)
        elif isinstance(value, str) and is_address(key) and userinfo(value):
            raise ConfigError(
                f"{key} holds a user or a password before the @",
                hint="addresses are logged and sent: leave it out; credentials come from the AWS"
                " environment, or from kafka.properties",
                key=key,
                origin=origins.get(key),
            )


def _set(raw: dict[str, object], dotted: str, value: object) -> None:
    section, _, name = dotted.partition(".")
    inner = raw.setdefault(section, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"{section}: expected a mapping", key=section)
    inner[name] = value


def _leaves(raw: Mapping[str, object], prefix: str = "") -> list[str]:
    found = []
    for name, value in raw.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            found += _leaves(value, f"{key}.")
        else:
            found.append(key)
    return found

"""Strict decoding of what people wrote: unknown keys and wrong types are named with their path."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from snapstore.errors import ConfigError
from snapstore.model.units import parse_duration, parse_size

T = TypeVar("T")


def decode(raw: object, type_: type[T], *, path: str = "") -> T:
    """Return ``raw`` (mappings, lists, scalars) as ``type_``.

    Sizes and durations may be texts with a unit. ``path`` says where ``raw`` belongs, for messages.
    Raises ConfigError with the fact ``key``: the path of the bad field.
    """
    prepared = _prepare(raw, msgspec.inspect.type_info(type_), path)
    try:
        return msgspec.convert(prepared, type_)
    except msgspec.ValidationError as exc:
        what, _, where = str(exc).partition(" - at `$")
        key = _join(path, where.removesuffix("`").lstrip("."))
        raise ConfigError(f"{key}: {_lower(what)}", key=key) from exc


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return up to two known words that were probably meant, best first."""
    # Imported here: it is for mistakes alone.
    import difflib

    return difflib.get_close_matches(word, list(known), n=2, cutoff=0.7)


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """Return a sentence that helps somebody who wrote an unknown word."""
    choices = sorted(known)
    close = nearest(word, choices)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known: {', '.join(choices)}" if choices else "nothing is known by any name here"


def _prepare(raw: object, expected: msgspec.inspect.Type, path: str) -> object:
    """Return ``raw`` with sizes and durations parsed; raise at the first unknown key."""
    match expected:
        case msgspec.inspect.Metadata(type=inner, extra=extra):
            if isinstance(raw, str) and (extra or {}).get("unit") == "bytes":
                return _parsed(parse_size, raw, path)
            return _prepare(raw, inner, path)
        case msgspec.inspect.UnionType(types=types):
            return _prepare_union(raw, types, path)
        case msgspec.inspect.TimeDeltaType():
            return _prepare_duration(raw, path)
        case msgspec.inspect.StructType(fields=fields) if isinstance(raw, Mapping):
            return _prepare_struct(raw, fields, path)
        case msgspec.inspect.StructType() | msgspec.inspect.DictType() if raw is None and path:
            # `section:` with everything below it commented out.
            return {}
        case msgspec.inspect.DictType(value_type=value_type) if isinstance(raw, Mapping):
            return {
                key: _prepare(value, value_type, _join(path, str(key)))
                for key, value in raw.items()
            }
        case (
            msgspec.inspect.ListType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item)
        ) if isinstance(raw, list | tuple):
            return [_prepare(value, item, f"{path}[{i}]") for i, value in enumerate(raw)]
        case msgspec.inspect.StrType() if raw is not None and not isinstance(raw, str):
            raise ConfigError(
                f"{path}: expected a text, got {_spelled(raw)}",
                hint=f'put it in quotes: "{_spelled(raw)}"' if _is_scalar(raw) else None,
                key=path,
            )
        case _:
            return raw


def _prepare_union(raw: object, types: tuple[msgspec.inspect.Type, ...], path: str) -> object:
    if raw is None or len(types) > 2:
        return raw
    known = [one for one in types if not isinstance(one, msgspec.inspect.NoneType)]
    return _prepare(raw, known[0], path) if len(known) == 1 else raw


def _prepare_struct(
    raw: Mapping[Any, object], fields: tuple[msgspec.inspect.Field, ...], path: str
) -> dict[str, object]:
    by_name = {field.encode_name: field for field in fields}
    prepared: dict[str, object] = {}
    for name, value in raw.items():
        key = _join(path, str(name))
        if name not in by_name:
            raise ConfigError(f"{key}: unknown key", hint=nearest_hint(str(name), by_name), key=key)
        prepared[name] = _prepare(value, by_name[name].type, key)
    return prepared


def _prepare_duration(raw: object, path: str) -> object:
    if isinstance(raw, str):
        return _parsed(parse_duration, raw, path)
    if isinstance(raw, timedelta) or raw is None:
        return raw
    raise ConfigError(
        f"{path}: expected a duration, got {_spelled(raw)}",
        hint="write for instance 90s, 1h30m or 7d",
        key=path,
    )


def _parsed(parse: Any, raw: str, path: str) -> object:
    try:
        return parse(raw)
    except ValueError as exc:
        raise ConfigError(f"{path}: {exc}", key=path) from exc


def _is_scalar(raw: object) -> bool:
    return isinstance(raw, bool | int | float)


def _spelled(raw: object) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if _is_scalar(raw):
        return str(raw)
    return "a list" if isinstance(raw, list | tuple) else "a mapping"


def _join(path: str, name: str) -> str:
    if not path or not name or name.startswith("["):
        return path + name
    return f"{path}.{name}"


def _lower(sentence: str) -> str:
    """Return msgspec's sentence the way our own begin, in plain words."""
    words = sentence.replace("`", "").replace("object", "a mapping").replace("array", "a list")
    return words[:1].lower() + words[1:]

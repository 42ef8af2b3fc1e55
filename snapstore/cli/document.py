"""Spell a JSON document: times in UTC, durations in seconds, sizes in bytes."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec


def encode(document: Mapping[str, object]) -> str:
    """Return the document as one line of JSON."""
    return msgspec.json.encode(_plain(document)).decode()


def _plain(value: object) -> Any:
    match value:
        case Mapping():
            return {_plain(str(key)): _plain(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(inner) for inner in value]
        case timedelta():
            return value.total_seconds()
        case Path():
            return _plain(str(value))
        case msgspec.Struct():
            return _plain(msgspec.structs.asdict(value))
        case bytes():
            return value.hex()
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case _:
            return value

"""Sizes and durations as people write and read them."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final

import msgspec

Bytes = Annotated[int, msgspec.Meta(ge=0, extra={"unit": "bytes"})]
"""An int field that a configuration may also spell ``64MiB``."""

_FACTORS: Final = {
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
    "TIB": 1024**4,
}
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)(?:/s)?", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes that ``64MiB``, ``1.5 GB`` or ``1000`` names; a rate may end in ``/s``.

    Raises ValueError for anything else, ``64M`` included: it does not say which of the two it is.
    """
    match = _SIZE.fullmatch(text.strip())
    factor = _FACTORS.get(match[2].upper() or "B") if match else None
    if match is None or factor is None:
        raise ValueError(f"not a size: {text!r} (write for instance 64MiB or 1.5GB)")
    size = float(match[1]) * factor if "." in match[1] else int(match[1]) * factor
    if size != int(size):
        raise ValueError(f"not a whole number of bytes: {text!r}")
    return int(size)


def parse_duration(text: str) -> timedelta:
    """Return the time that ``90s``, ``1h30m`` or ``7d`` names.

    Raises ValueError for anything else, a number without a unit included.
    """
    stripped = text.strip()
    if not _DURATION.fullmatch(stripped):
        raise ValueError(f"not a duration: {text!r} (write for instance 90s, 1h30m or 7d)")
    seconds = sum(
        float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(stripped)
    )
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f"too long a duration: {text!r}") from None


def format_size(size_bytes: int) -> str:
    """Return three or four significant digits: ``0 B``, ``1.4 MiB``, ``250 GiB``."""
    if abs(size_bytes) < 1024:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        if abs(value) < 1023.95 or unit == "PiB":
            break
    return f"{value:.0f} {unit}" if abs(value) >= 99.95 else f"{value:.1f} {unit}"


def format_duration(seconds: float) -> str:
    """Return the two largest units: ``0.4 s``, ``2 min 05 s``, ``3 h 10 min``, ``5 d 02 h``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60, whole // 3600
    if hours == 0:
        return f"{minutes} min {whole % 60:02} s"
    if hours < 48:
        return f"{hours} h {minutes % 60:02} min"
    return f"{hours // 24} d {hours % 24:02} h"


def spell_duration(value: timedelta) -> str:
    """Return the text that ``parse_duration`` reads back: ``7d``, ``1h30m``."""
    milliseconds = value // timedelta(milliseconds=1)
    parts = []
    for unit, seconds in (("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, milliseconds = divmod(milliseconds, seconds * 1000)
        if count:
            parts.append(f"{count}{unit}")
    if milliseconds:
        parts.append(f"{milliseconds}ms")
    return "".join(parts) or "0s"


def spell_size(size_bytes: int) -> str:
    """Return the shortest exact text that ``parse_size`` reads back: ``64MiB``, ``1000``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        factor = _FACTORS[unit.upper()]
        if size_bytes and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def few(names: Sequence[str], shown: int = 3) -> str:
    """Return the first names, and how many more there are: ``a, b, c and 497 more``."""
    left = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {left:,} more" if left > 0 else "")


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 file``, ``1,204 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"

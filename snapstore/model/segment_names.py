"""What folders Kafka Streams takes for the segments of a window, session or join store."""

import re
from datetime import UTC, datetime, timedelta

_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2,6})", re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)


def segment_start(store: str, name: str) -> int | None:
    """Return the time at which a segment begins, in milliseconds; None for what is no segment.

    ``name`` is that of a folder in the folder of the store. `AbstractSegments` (the same in 4.2.1,
    4.3.1 and 4.4.0) looks at what follows the length of the store's name: ``.MILLISECONDS``;
    ``:MILLISECONDS`` and ``-yyyyMMddHHmm`` in UTC are names of older versions, which it renames at
    its start and opens.
    """
    prefix, sign, rest = _cut(store, name)
    if sign == "-":
        return _date(rest)
    if not _DIGITS.fullmatch(rest):
        return None
    plain = prefix == store and rest == str(int(rest))
    return int(rest) if sign == ":" or (sign == "." and plain) else None


def segment_time(store: str, database: str) -> int:
    """Return ``segment_start`` of a database that is a segment; raises ValueError for another."""
    start = segment_start(store, database.rpartition("/")[2])
    if start is None:
        raise ValueError(f"no segment of {store}: {database!r}")
    return start


def segment_opened_instead(store: str, name: str) -> str | None:
    """Return the folder that Kafka Streams opens, or makes, where it finds one of that name.

    It reads the number after any sign, and goes on with its own way to write it.
    """
    _, sign, rest = _cut(store, name)
    if sign in ("", "-", ":") or not _DIGITS.fullmatch(rest):
        return None
    own = f"{store}.{int(rest)}"
    return own if own != name else None


def is_passed_over(store: str, name: str) -> bool:
    """Whether Kafka Streams warns of a folder in that of the store, and leaves it alone."""
    _, sign, rest = _cut(store, name)
    return sign == "-" and _date(rest) is None


def _cut(store: str, name: str) -> tuple[str, str, str]:
    length = len(store)
    return name[:length], name[length : length + 1], name[length + 1 :]


def _date(text: str) -> int | None:
    """Read a time as Java's lenient SimpleDateFormat does; what follows the digits is ignored."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute = (int(each) for each in match.groups())
    years, month = divmod(month - 1, 12)
    if not 1970 <= year + years < 9999:
        return None
    first = datetime(year + years, month + 1, 1, tzinfo=UTC)
    moment = timedelta(days=day - 1, hours=hour, minutes=minute)
    return (int(first.timestamp()) + int(moment.total_seconds())) * 1000

"""What the fixture application says about itself: one JSON object a line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec


class Event(msgspec.Struct, frozen=True, tag_field="event", rename="camel"):
    """Something that happened in the application."""


class RestoreStart(Event, frozen=True, tag="restoreStart"):
    store: str
    topic: str
    partition: int
    start_offset: int
    end_offset: int


class RestoreEnd(Event, frozen=True, tag="restoreEnd"):
    store: str
    topic: str
    partition: int
    restored: int
    ms: int


class RestoreSuspended(Event, frozen=True, tag="restoreSuspended"):
    store: str
    topic: str
    partition: int
    restored: int


class StateChange(Event, frozen=True, tag="state"):
    state: str
    ms: int


class Dumped(Event, frozen=True, tag="dumped"):
    lines: int


class StreamsException(Event, frozen=True, tag="exception"):
    what: str


class Closed(Event, frozen=True, tag="closed"):
    clean: bool
    ms: int


class Generated(Event, frozen=True, tag="generated"):
    records: int
    next_ts: int


AnyEvent = (
    RestoreStart
    | RestoreEnd
    | RestoreSuspended
    | StateChange
    | Dumped
    | StreamsException
    | Closed
    | Generated
)
_DECODER = msgspec.json.Decoder(AnyEvent)

Dump = dict[str, dict[str, str]]


def read_events(path: Path) -> Iterator[AnyEvent]:
    """The events in a report or a log; a last line without its end is left out."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines(keepends=True):
        if line.startswith(b'{"event"') and line.endswith(b"\n"):
            yield _DECODER.decode(line)


def parse_dump(lines: Iterable[str]) -> Dump:
    """Per store: key with its window or version, to value with its timestamp if it has one."""
    dump: Dump = {}
    for line in lines:
        store, key, value = line.split("\t", 2)
        entries = dump.setdefault(store, {})
        assert key not in entries, f"{store} has {key} twice"
        entries[key] = value
    return dump


def read_dump(path: Path) -> Dump:
    return parse_dump(path.read_text(encoding="utf-8").split("\n")[:-1])

"""The `.checkpoint` file: changelog offsets as text.

The grammar is that of Kafka's OffsetCheckpoint.java: a version (0), the number of entries, then
``TOPIC PARTITION OFFSET`` on a line each, ended by LF, CR or CR LF. Offsets are 64-bit; -4 stands
for one that is not known and is None here; a line with any other negative number is passed over
by Kafka Streams, as if it were not there, and so it is here. Files of this grammar are
`.checkpoint` in a task directory and `.checkpoint_STORE`; `.checkpoint.tmp` is a half-written one
and never read.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from snapstore.errors import SourceDamagedError
from snapstore.model.identity import ChangelogPartition

UNKNOWN = -4

_GREATEST_INT = 2**31 - 1
_GREATEST_LONG = 2**63 - 1
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_SPACE = re.compile(r"[ \t\x0b\f]+")

Offsets = dict[ChangelogPartition, int | None]


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """A line that Kafka Streams reads and leaves out; ``changelog`` None: of no partition."""

    number: int
    text: str
    changelog: ChangelogPartition | None


class _Content(msgspec.Struct, frozen=True):
    offsets: Offsets
    passed_over: tuple[PassedOver, ...]


def parse_checkpoint(content: bytes, path: Path) -> Offsets:
    """Return what Kafka Streams takes from the file; None where an offset is not known.

    Of a partition that is named twice the last line counts, if the number of entries allows it.
    Raises SourceDamagedError with the path, the line and the text at fault.
    """
    return dict(_read(content, path).offsets)


def lines_passed_over(content: bytes, path: Path) -> tuple[PassedOver, ...]:
    """Return the lines that ``parse_checkpoint`` leaves out; raises what it raises."""
    return _read(content, path).passed_over


def on_passed_over(line: PassedOver, path: Path) -> str:
    """Say in a sentence what becomes of such a line."""
    return (
        f"{path}, line {line.number}: Kafka Streams passes over {line.text[:200]!r}, as if the "
        "offset were not noted"
    )


@lru_cache(maxsize=64)
def _read(content: bytes, path: Path) -> _Content:
    """Read a content once for all stores of a task: each of them asks, several times."""
    lines = [_decode(line, number, path) for number, line in enumerate(content.splitlines(), 1)]
    if len(lines) < 2:
        raise _damaged(path, len(lines) + 1, "the file ends early")
    version = _number(lines[0], 1, path, "a version")
    if version != 0:
        raise SourceDamagedError(
            f"{path} has version {version} of the offset file, and only version 0 is known",
            hint="a newer Kafka Streams wrote it: look for a newer snapstore",
            path=str(path),
            version=version,
        )
    count = _number(lines[1], 2, path, "a number of entries")
    offsets: Offsets = {}
    twice: tuple[int, str, str] | None = None
    passed_over: list[PassedOver] = []
    entries = 0
    for number, line in enumerate(lines[2:], 3):
        topic, partition, offset = _entry(line, number, path)
        changelog = ChangelogPartition(topic, partition) if partition >= 0 else None
        if changelog is None or (offset < 0 and offset != UNKNOWN):
            passed_over.append(PassedOver(number=number, text=line, changelog=changelog))
            entries += 1
            continue
        if changelog in offsets:
            twice = (number, f"names {changelog} a second time", line)
        offsets[changelog] = None if offset == UNKNOWN else offset
    entries += len(offsets)
    if entries != count:
        if twice is not None:
            raise _damaged(path, *twice)
        raise _damaged(path, 2, f"announces {count} entries, and there are {entries}", lines[1])
    return _Content(offsets, tuple(passed_over))


def render_checkpoint(offsets: Mapping[ChangelogPartition, int | None]) -> bytes:
    """Return the file's content, sorted; None is written as not known."""
    lines = ["0", str(len(offsets))]
    for changelog in sorted(offsets):
        offset = offsets[changelog]
        number = UNKNOWN if offset is None else offset
        lines.append(f"{changelog.topic} {changelog.partition} {number}")
    return "".join(f"{line}\n" for line in lines).encode()


def _entry(line: str, number: int, path: Path) -> tuple[str, int, int]:
    pieces = _SPACE.split(line.rstrip(" \t\x0b\f"))
    if len(pieces) != 3 or not all(pieces):
        raise _damaged(path, number, "not of the form TOPIC PARTITION OFFSET", line)
    partition = _number(pieces[1], number, path, "a partition")
    offset = _number(pieces[2], number, path, "an offset")
    if not -_GREATEST_INT - 1 <= partition <= _GREATEST_INT:
        raise _damaged(path, number, "no partition has this number", pieces[1])
    if not -_GREATEST_LONG - 1 <= offset <= _GREATEST_LONG:
        raise _damaged(path, number, "no record has this offset", pieces[2])
    return pieces[0], partition, offset


def _number(text: str, number: int, path: Path, what: str) -> int:
    if not _NUMBER.fullmatch(text) or len(text) > 20:
        raise _damaged(path, number, f"not {what}", text)
    return int(text)


def _decode(line: bytes, number: int, path: Path) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as exc:
        text = line.decode(errors="backslashreplace")
        raise _damaged(path, number, "not UTF-8", text) from exc


def _damaged(path: Path, number: int, what: str, text: str | None = None) -> SourceDamagedError:
    shown = "" if text is None else f": {text[:200]!r}"
    return SourceDamagedError(
        f"{path}, line {number}: {what}{shown}",
        hint="the application would not read it either: remove the file, and it replays from the "
        "start of the changelog",
        path=str(path),
        line=number,
    )

"""State directories that real Quix Streams and Faust applications left, and their changelogs.

Each pair was copied at two moments, A and B: replaying the records between them on A must give B.

- `quix_alos`: Quix Streams 3.28.1, at-least-once; A copied while it ran, B after it was stopped.
- `quix_eos_ttl`: the same under exactly-once, with values that expire and windows that collect; A
  copied while it ran, B rebuilt by the application from its changelog.
- `faust_clean`: Faust 0.15.3, stopped both times; `faust_hot`: copied while it ran.
"""

import gzip
import tarfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition

Pair = Literal["quix_alos", "quix_eos_ttl", "faust_clean", "faust_hot"]
Moment = Literal["A", "B"]

_DIRECTORY = Path(__file__).resolve().parents[1] / "fixtures" / "python_engines"
_NAMES: Mapping[tuple[Pair, Moment], str] = {
    ("quix_alos", "A"): "quix_alos_hot_at_A",
    ("quix_alos", "B"): "quix_alos_clean_at_B",
    ("quix_eos_ttl", "A"): "quix_eos_ttl_hot_at_A",
    ("quix_eos_ttl", "B"): "quix_eos_ttl_at_B",
    ("faust_clean", "A"): "faust_clean_at_A",
    ("faust_clean", "B"): "faust_clean_at_B",
    ("faust_hot", "A"): "faust_hot_at_A",
    ("faust_hot", "B"): "faust_hot_at_B",
}


class ExpectedStore(msgspec.Struct, frozen=True):
    """What one store held; ``path`` is relative to the state directory."""

    path: str
    changelog: str
    partition: int
    applied_offset: int = msgspec.field(name="changelog_offset_inclusive")
    families: dict[str, dict[str, str]] = msgspec.field(name="column_families")

    @property
    def position(self) -> tuple[ChangelogPartition, int]:
        return ChangelogPartition(self.changelog, self.partition), self.applied_offset

    @property
    def contents(self) -> dict[str, dict[bytes, bytes]]:
        return {
            family: {_bytes(key): _bytes(value) for key, value in pairs.items()}
            for family, pairs in self.families.items()
        }


class _Expected(msgspec.Struct, frozen=True):
    stores: tuple[ExpectedStore, ...]


class _Line(msgspec.Struct, frozen=True):
    """A record, or (without an offset) the end of a partition."""

    topic: str
    partition: int
    offset: int | None = None
    leader_epoch: int | None = None
    timestamp: int = -1
    key: str | None = None
    value: str | None = None
    headers: tuple[tuple[str, str | None], ...] = ()


def unpack(pair: Pair, moment: Moment, target: Path) -> Path:
    """Unpack into ``target`` and return it: a state directory."""
    with tarfile.open(_DIRECTORY / f"{_NAMES[pair, moment]}.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def expected(pair: Pair, moment: Moment) -> tuple[ExpectedStore, ...]:
    with gzip.open(_DIRECTORY / f"{_NAMES[pair, moment]}.expected.json.gz") as document:
        return msgspec.json.decode(document.read(), type=_Expected).stores


def changelog(pair: Pair) -> Mapping[ChangelogPartition, Sequence[ChangelogRecord]]:
    """Return the records of every changelog partition, in order."""
    records: dict[ChangelogPartition, list[ChangelogRecord]] = defaultdict(list)
    with gzip.open(_DIRECTORY / f"{pair}.changelog.jsonl.gz") as document:
        for content in document:
            line = msgspec.json.decode(content, type=_Line)
            if line.offset is None:
                continue
            record = ChangelogRecord(
                offset=line.offset,
                key=_optional(line.key),
                value=_optional(line.value),
                timestamp_ms=line.timestamp,
                headers=tuple((name, _optional(value)) for name, value in line.headers),
                leader_epoch=line.leader_epoch,
            )
            records[ChangelogPartition(line.topic, line.partition)].append(record)
    return records


def _optional(text: str | None) -> bytes | None:
    return None if text is None else _bytes(text)


def _bytes(text: str) -> bytes:
    return msgspec.json.decode(f'"{text}"', type=bytes)

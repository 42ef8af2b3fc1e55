"""What a state directory of Kafka Streams holds, read from its RocksDB files without snapstore."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.rocksdb import raw_contents

OFFSETS = "offsets"

Families = Mapping[str, Mapping[bytes, bytes]]
Offsets = dict[tuple[str, int], int]
Stores = dict[tuple[str, str], dict[str, Families]]


def read_stores(application: Path, scratch: Path) -> Stores:
    """Return, by task and store, every database: its name, and its families with all entries."""
    found: Stores = {}
    for task, store, folder in _databases(application):
        found.setdefault((task, store), {})[folder.name] = raw_contents(folder, scratch)
    return found


def data_of(databases: Mapping[str, Families]) -> dict[bytes, bytes]:
    """Merge the rows of all databases of one store; none is in two of them."""
    rows: dict[bytes, bytes] = {}
    for families in databases.values():
        for name, entries in families.items():
            if name == OFFSETS:
                continue
            assert not entries.keys() & rows.keys()
            rows |= entries
    return rows


def noted_offsets(application: Path, databases: Mapping[str, Families], task: str) -> list[Offsets]:
    """Return what each database of a store notes; to 4.2, all that the task's file notes."""
    noted = [
        {_changelog(key): int.from_bytes(value, "big", signed=True) for key, value in told.items()}
        for families in databases.values()
        for told in (_offsets(families),)
        if OFFSETS in families
    ]
    return noted or [_checkpoint(application / task / ".checkpoint")]


def _offsets(families: Families) -> Mapping[bytes, bytes]:
    """Leave out the two keys that are no offsets."""
    told = families.get(OFFSETS, {})
    return {key: value for key, value in told.items() if key not in (b"status", b"position")}


def _changelog(key: bytes) -> tuple[str, int]:
    topic, _, partition = key.decode().rpartition("-")
    return topic, int(partition)


def _checkpoint(file: Path) -> Offsets:
    offsets = {}
    for line in file.read_text().splitlines()[2:]:
        topic, partition, offset = line.split(" ")
        offsets[(topic, int(partition))] = int(offset)
    return offsets


def _databases(application: Path) -> Iterator[tuple[str, str, Path]]:
    for current in sorted(application.glob("*/*/*/CURRENT")):
        folder = current.parent
        task = folder.parent.parent.name
        one_database = folder.parent.name == "rocksdb"
        yield task, folder.name if one_database else folder.parent.name, folder

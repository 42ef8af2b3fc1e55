"""State directories that real Kafka Streams applications left, and what they must hold.

- `ks440-alos`: 4.4.0, at-least-once, closed cleanly: offsets are in the RocksDB databases.
- `ks400-eos`: 4.0.0, exactly-once, closed cleanly: offsets are in `.checkpoint` files.
- `ks440-alos-hot`: 4.4.0, copied while it ran: segments of unequal and missing offsets, one
  database without its offsets family. Its dump is what it holds after the rest of the changelog.
"""

import gzip
import tarfile
from pathlib import Path
from typing import Literal

import msgspec

from tests.support.streams_report import Dump, parse_dump

FixtureName = Literal["ks440-alos", "ks400-eos", "ks440-alos-hot"]
FIXTURES: tuple[FixtureName, ...] = ("ks440-alos", "ks400-eos", "ks440-alos-hot")

_DIRECTORY = Path(__file__).resolve().parents[1] / "fixtures"


class Database(msgspec.Struct, frozen=True, rename="camel"):
    """One RocksDB directory: entries by column family, and what its offsets family says."""

    column_families: dict[str, int]
    offsets: dict[str, int] = {}


class Expected(msgspec.Struct, frozen=True, rename="camel"):
    """What a fixture must hold. `rocksdb` is keyed by the path below the application directory;
    `changelog_end_offsets` and `offsets` by TOPIC-PARTITION."""

    name: str
    kafka_version: str
    guarantee: str
    hot: bool
    app_id: str
    input_topic: str
    changelog_end_offsets: dict[str, int]
    rocksdb: dict[str, Database]
    dump_lines: list[str] = msgspec.field(name="dump")
    checkpoint_files: dict[str, str] = {}

    @property
    def dump(self) -> Dump:
        return parse_dump(self.dump_lines)


def unpack(name: FixtureName, target: Path) -> Path:
    """Unpack into `target`, taken as a state.dir; returns the application directory."""
    with tarfile.open(_DIRECTORY / f"{name}.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target / name


def unpack_custom(name: Literal["reverse", "merge"], folder: Path) -> Path:
    """Put a database made by RocksDB 10.1.3 for Java in a folder; ``folder`` is made.

    `reverse`: both families are ordered by rocksdb.ReverseBytewiseComparator; `merge`: half of
    its values are operands of the operator `stringappend`. Both note 99 for
    orders-counts-changelog:0 and are marked as closed.
    """
    folder.mkdir(parents=True)
    with tarfile.open(_DIRECTORY / "rocksdb-custom.tar.gz") as archive:
        for member in archive.getmembers():
            if member.isfile() and member.name.startswith(f"{name}/"):
                content = archive.extractfile(member)
                assert content is not None
                (folder / Path(member.name).name).write_bytes(content.read())
    return folder


def expected(name: FixtureName) -> Expected:
    with gzip.open(_DIRECTORY / f"{name}.json.gz") as document:
        return msgspec.json.decode(document.read(), type=Expected)

"""Which RocksDB can read what another one wrote."""

import pytest

from snapstore.model.rocksdb_format import RocksDBWriter, Version, can_read, parse_options

OPTIONS = b"""
# This is a RocksDB option file.
[Version]
  rocksdb_version=10.1.3
  options_file_version=1.1
[TableOptions/BlockBasedTable "default"]
  format_version=5
[TableOptions/BlockBasedTable "offsets"]
  format_version=6
"""


def test_h15_an_options_file_names_its_writer_and_the_newest_format() -> None:
    assert parse_options(OPTIONS) == RocksDBWriter(version=(10, 1, 3), table_format=6)
    assert parse_options(b"") is None
    assert parse_options(b"rocksdb_version=10.1\xff") is None


@pytest.mark.parametrize(
    ("reader", "version", "table_format", "readable"),
    [
        ((7, 9, 2), (10, 1, 3), 6, False),
        ((7, 9, 2), (10, 1, 3), 5, True),
        ((9, 7, 3), (10, 1, 3), 6, True),
        ((10, 1, 3), (10, 4, 2), 7, False),
        ((10, 4, 0), (10, 5, 0), 7, True),
        ((10, 1, 3), (99, 0, 0), 8, False),
        ((10, 1, 3), (9, 7, 3), 99, True),
        ((5, 18, 4), (6, 29, 4), 5, False),
        ((7, 9, 2), (10, 1, 3), None, True),
    ],
)
def test_h15_a_table_is_read_by_the_versions_that_know_its_format(
    reader: Version, version: Version, table_format: int | None, readable: bool
) -> None:
    writer = RocksDBWriter(version=version, table_format=table_format)
    assert can_read(reader, writer) is readable

"""Stores that real Kafka Streams applications left, captured and opened from the copy."""

from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.model.digest import entries_digest
from snapstore.testing.backend_contract import look_of, materialise
from tests.support.fixtures import FIXTURES, FixtureName, expected, unpack
from tests.support.rocksdb import locate, raw_contents


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXTURES)
def test_every_store_of_kafka_streams_comes_back_with_equal_raw_contents(
    name: FixtureName, tmp_path: Path
) -> None:
    application = unpack(name, tmp_path / "state")
    before = look_of(application)
    truth = expected(name)
    seen = set()
    for task, root in sorted(_stores(truth.rocksdb)):
        target = tmp_path / "copy" / task
        with RocksDBBackend().capture(locate(application / task, root)) as capture:
            materialise(capture, target)
            for database in capture.view.databases:
                counted = {
                    family: sum(1 for _ in capture.view.scan(database, family))
                    for family in capture.view.families(database)
                }
                counted.pop("offsets", None)
                assert counted == truth.rocksdb[f"{task}/{database}"].column_families
                seen.add(f"{task}/{database}")
                source = raw_contents(application / task / database, tmp_path)
                assert raw_contents(target / database, tmp_path) == source
                for family, entries in source.items():
                    digest = entries_digest(capture.view.scan(database, family))
                    assert digest == entries_digest(sorted(entries.items()))
    assert seen == set(truth.rocksdb)
    assert look_of(application) == before


def test_a_database_caught_before_its_offsets_family_gets_one_when_entries_are_noted(
    tmp_path: Path,
) -> None:
    application = unpack("ks440-alos-hot", tmp_path / "state")
    without = [
        folder
        for folder in expected("ks440-alos-hot").rocksdb
        if "offsets" not in raw_contents(application / folder, tmp_path)
    ]
    assert without
    task, _, root = without[0].partition("/")
    backend = RocksDBBackend()
    backend.write_entries(application / without[0], "offsets", {b"changelog-0": None})
    with backend.open_view(application / task, root) as view:
        assert "offsets" not in view.families(root)
    backend.write_entries(application / without[0], "offsets", {b"changelog-0": b"\0" * 8})
    with backend.open_view(application / task, root) as view:
        assert view.entries(root, "offsets") == {b"changelog-0": b"\0" * 8}


def _stores(databases: object) -> set[tuple[str, str]]:
    """Task and root: ``rocksdb/NAME`` is one database, another folder is one of segments."""
    assert isinstance(databases, dict)
    stores = set()
    for folder in databases:
        task, *rest = folder.split("/")
        stores.add((task, "/".join(rest) if rest[0] == "rocksdb" else rest[0]))
    return stores

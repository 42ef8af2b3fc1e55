"""What is written into a store is what a reader, another driver and the next run find."""

import random
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.errors import CaptureError, StoreNotFoundError
from tests.support.batch_writer import APPLIED, DATABASE, FAMILIES, KEYS, key_of, value_of
from tests.support.crash import kill_at
from tests.support.rocksdb import raw_contents

SEGMENTS = ("sales/sales.0", "sales/sales.10")


def written(task_dir: Path, database: str = DATABASE) -> dict[str, dict[bytes, bytes]]:
    scratch = task_dir.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    return raw_contents(task_dir / database, scratch)


@pytest.mark.slow
@pytest.mark.parametrize("batches", [30, 150, 300])
def test_a_writer_that_is_killed_leaves_whole_batches_with_their_offset(
    tmp_path: Path, batches: int
) -> None:
    task_dir = tmp_path / "task"
    arguments = {"task_dir": str(task_dir)}
    kill_at("tests.support.batch_writer:write_for_ever", arguments, "batch written", batches)

    found = written(task_dir)
    if APPLIED not in found["offsets"]:
        assert not found[FAMILIES[0]]
        return
    applied = int.from_bytes(found["offsets"][APPLIED], "big")
    newest = {key_of(number): value_of(number) for number in range(applied - KEYS + 1, applied + 1)}
    assert found[FAMILIES[0]] == newest
    assert applied > 0


def test_what_is_written_is_read_at_once_and_durable_at_the_end(tmp_path: Path) -> None:
    task_dir = tmp_path / "task"
    backend = RocksDBBackend()
    with backend.open_writer(task_dir, DATABASE) as writer:
        writer.create(DATABASE, FAMILIES)
        writer.write(DATABASE, {FAMILIES[0]: [(b"a", b"1"), (b"b", b"2")], "default": []})
        assert writer.get(DATABASE, FAMILIES[0], b"a") == b"1"
        writer.write(DATABASE, {FAMILIES[0]: [(b"a", None)], "offsets": [(b"o", b"8")]})
        assert writer.get(DATABASE, FAMILIES[0], b"a") is None
        assert dict(writer.scan(DATABASE, FAMILIES[0])) == {b"b": b"2"}
        writer.flush()
        assert writer.entries(DATABASE, "offsets") == {b"o": b"8"}
    expected = {"default": {}, FAMILIES[0]: {b"b": b"2"}, "offsets": {b"o": b"8"}}
    assert written(task_dir) == expected
    with backend.open_view(task_dir, DATABASE) as view:
        assert {name: view.entries(DATABASE, name) for name in view.families(DATABASE)} == expected
    litter = {"LOCK", "LOG", "rocksdict-config.json"}
    assert not litter & {path.name for path in (task_dir / DATABASE).iterdir()}


def test_of_a_key_that_is_written_again_and_again_the_last_value_stays(tmp_path: Path) -> None:
    draw = random.Random(7)
    expected: dict[bytes, bytes] = {}
    with RocksDBBackend().open_writer(tmp_path, DATABASE) as writer:
        writer.create(DATABASE, ())
        for _ in range(120):
            emptied = [b"%d/" % draw.randrange(9)] if draw.random() < 0.2 else []
            pairs = [
                (b"%d/%d" % (draw.randrange(9), draw.randrange(40)), draw.randbytes(600))
                for _ in range(500)
            ]
            changes = [(key, value if draw.random() < 0.8 else None) for key, value in pairs]
            writer.write(DATABASE, {"default": changes}, emptied={"default": emptied})
            for prefix in emptied:
                gone = [key for key in expected if key.startswith(prefix)]
                for key in gone:
                    del expected[key]
            for key, value in changes:
                if value is None:
                    expected.pop(key, None)
                else:
                    expected[key] = value
    tables = [path for path in (tmp_path / DATABASE).iterdir() if path.suffix == ".sst"]
    assert tables
    assert written(tmp_path)["default"] == expected


def test_keys_with_a_prefix_go_before_others_are_written(tmp_path: Path) -> None:
    prefix = b"\0\1\xff"
    with RocksDBBackend().open_writer(tmp_path, DATABASE) as writer:
        writer.create(DATABASE, ())
        keys = [prefix + b"a", prefix + b"\xff\xff", b"\0\1\xfe", b"\0\2"]
        writer.write(DATABASE, {"default": [(key, b"old") for key in keys]})
        writer.write(
            DATABASE, {"default": [(prefix + b"b", b"new")]}, emptied={"default": [prefix]}
        )
        assert dict(writer.scan_from(DATABASE, "default", b"\0\1")) == {
            b"\0\1\xfe": b"old",
            prefix + b"b": b"new",
            b"\0\2": b"old",
        }


def test_segments_come_and_go(tmp_path: Path) -> None:
    backend = RocksDBBackend()
    with backend.open_writer(tmp_path, "sales") as writer:
        assert not writer.databases
        for segment in SEGMENTS:
            writer.create(segment, ("offsets",))
            writer.write(segment, {"default": [(segment.encode(), b"v")]})
        assert writer.databases == SEGMENTS
    with backend.open_writer(tmp_path, "sales") as writer:
        assert writer.families(SEGMENTS[1]) == ("default", "offsets")
        writer.drop(SEGMENTS[0])
        assert writer.databases == SEGMENTS[1:]
        with pytest.raises(StoreNotFoundError):
            writer.get(SEGMENTS[0], "default", b"k")
    assert not (tmp_path / SEGMENTS[0]).exists()
    assert written(tmp_path, SEGMENTS[1])["default"] == {SEGMENTS[1].encode(): b"v"}


def test_tables_that_are_linked_elsewhere_stay_as_they_are(tmp_path: Path) -> None:
    backend = RocksDBBackend()
    first, second = tmp_path / "first", tmp_path / "second"
    with backend.open_writer(first, DATABASE) as writer:
        writer.create(DATABASE, ())
        writer.write(DATABASE, {"default": [(b"k%d" % n, b"old") for n in range(1000)]})
    (second / DATABASE).mkdir(parents=True)
    for path in (first / DATABASE).iterdir():
        copy = second / DATABASE / path.name
        if path.suffix == ".sst":
            copy.hardlink_to(path)
        else:
            copy.write_bytes(path.read_bytes())
    before = {path: path.read_bytes() for path in (first / DATABASE).iterdir()}
    for round_ in range(6):
        with backend.open_writer(second, DATABASE) as writer:
            writer.write(DATABASE, {"default": [(b"k%d" % n, b"%d" % round_) for n in range(1000)]})
    assert {path: path.read_bytes() for path in (first / DATABASE).iterdir()} == before
    assert set(written(second)["default"].values()) == {b"5"}


def test_a_store_that_somebody_has_open_cannot_be_written(tmp_path: Path) -> None:
    backend = RocksDBBackend()
    with backend.open_writer(tmp_path, DATABASE) as writer:
        writer.create(DATABASE, ())
        with (
            backend.open_writer(tmp_path, DATABASE) as other,
            pytest.raises(CaptureError, match="cannot be written"),
        ):
            other.get(DATABASE, "default", b"k")

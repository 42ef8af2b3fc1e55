"""A memory store whose process is killed at any of its writes."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import snapstore
from snapstore.memory import MemoryStore
from snapstore.model.store import ByteSource
from snapstore.ports import ObjectStorage
from snapstore.registry import Registry
from snapstore.storages.local import LocalStorage
from tests.memory.conftest import CHANGELOG, STORE, record
from tests.support.crash import kill_at, points_of

WORK = "tests.memory.test_crash:work"
FIRST = {b"%03d" % n: b"first" for n in range(200)}
SECOND = {**FIRST, **{b"%03d" % n: b"second" for n in range(50)}, b"new": b"second"}
THIRD = {b"%03d" % n: b"third" for n in range(200)} | {b"new": b"second"}
STATES = {199: FIRST, 250: SECOND, 450: THIRD}


class Reporting(LocalStorage):
    """Says when a write begins and when it is done."""

    def __init__(self, url: str, reached: Callable[[str], None]) -> None:
        super().__init__(url)
        self._reached = reached

    def put(self, key: str, body: bytes, *, if_absent: bool = False) -> None:
        kind = key.partition("/")[0]
        self._reached(f"before {kind}")
        super().put(key, body, if_absent=if_absent)
        self._reached(f"after {kind}")

    def put_file(self, key: str, source: ByteSource, *, sha256: str) -> bool:
        self._reached("before a blob")
        stored = super().put_file(key, source, sha256=sha256)
        self._reached("after a blob")
        return stored


class ReportingRegistry(Registry):
    def __init__(self, reached: Callable[[str], None]) -> None:
        super().__init__()
        self._reached = reached

    def storage(self, url: str, options: Mapping[str, object]) -> ObjectStorage:
        assert not options
        return Reporting(url, self._reached)


def repository_url(folder: Path) -> str:
    return (folder / "repository").as_uri()


def write(store: MemoryStore, target: dict[bytes, bytes], offset: int) -> int:
    """Bring a store to a state, by a record for each pair that it lacks."""
    for key, value in sorted(target.items()):
        if store.get(key) != value:
            store.apply(record(offset, key, value))
            offset += 1
    return offset


def work(reached: Callable[[str], None], folder: str) -> None:
    """Take three snapshots: a base, a delta, and a base that takes their place."""
    place = Path(folder)
    registry = ReportingRegistry(reached)
    with (
        snapstore.open(repository_url(place), config=snapstore.Config(), registry=registry) as to,
        MemoryStore(STORE, place / "work", changelog=CHANGELOG, reached=reached) as store,
    ):
        offset = 0
        for target in STATES.values():
            offset = write(store, target, offset)
            store.snapshot(to)
            reached("snapshot taken")


def states_of(folder: Path) -> list[int]:
    """Check every snapshot against the log's prefix, and return their offsets, newest first."""
    with snapstore.open(repository_url(folder), config=snapstore.Config()) as repository:
        offsets = []
        for listed in repository.list().snapshots:
            with MemoryStore.restore(
                repository,
                STORE,
                folder / "checked" / listed.id,
                ref=listed.id,
                allow_unchecked_changelog=True,
            ) as store:
                offset = store.positions[CHANGELOG]
                assert dict(store.range()) == STATES[offset]
                assert listed.applied_offset == offset
                offsets.append(offset)
        assert not repository.verify(read_data=True, open_store=True).damage
    return offsets


def make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    snapstore.create(repository_url(folder), config=snapstore.Config()).close()


def test_the_work_itself_leaves_three_snapshots(tmp_path: Path) -> None:
    make(tmp_path)
    points = points_of(WORK, {"folder": str(tmp_path)})
    assert len(points) > 40
    assert states_of(tmp_path) == [450, 250, 199]


@pytest.mark.slow
def test_killed_at_any_write_it_leaves_whole_snapshots_and_the_next_run_goes_on(
    tmp_path: Path,
) -> None:
    make(tmp_path / "whole")
    points = points_of(WORK, {"folder": str(tmp_path / "whole")})
    for index, (point, occurrence) in enumerate(points):
        folder = tmp_path / str(index)
        make(folder)
        kill_at(WORK, {"folder": str(folder)}, point, occurrence)
        done = sum(1 for name, _ in points[:index] if name == "after catalog")
        reached = done + (point == "after catalog")
        assert states_of(folder) == [450, 250, 199][3 - reached :], (point, occurrence)
        with (
            snapstore.open(repository_url(folder), config=snapstore.Config()) as repository,
            MemoryStore(STORE, folder / "work", changelog=CHANGELOG) as store,
        ):
            saved = store.positions.get(CHANGELOG)
            assert saved is None or dict(store.range()) == STATES[saved]
            write(store, THIRD, 0 if saved is None else saved + 1)
            store.note(450)
            taken = store.snapshot(repository)
            assert taken.description.applied_offset == 450
        with MemoryStore.restore(
            repository, STORE, folder / "again", ref=taken.id, allow_unchecked_changelog=True
        ) as store:
            assert dict(store.range()) == THIRD

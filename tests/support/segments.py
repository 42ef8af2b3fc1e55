"""An engine with immutable files and small metadata, as Lucene has: for the files backend.

seg-000007.log     operations by number, never changed once it has its name
INDEX              which segments are the store, with their hashes; replaced by a rename
OFFSET             number of the last operation, written in place after INDEX

python -m tests.support.segments FOLDER PROGRESS
"""

import hashlib
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from snapstore.errors import SourceDamagedError
from snapstore.model.identity import StoreId
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreView
from snapstore.testing.backend_contract import operation
from tests.support.live_writer import LiveWriter

INDEX = "meta/INDEX"
OFFSET = "OFFSET"
_MOST_SEGMENTS = 8
_BATCH = 40

Pairs = dict[bytes, bytes | None]


class Segment(msgspec.Struct, frozen=True):
    name: str
    sha256: str


class Index(msgspec.Struct, frozen=True):
    """The segments, the oldest first; ``check`` is a hash over the rest."""

    applied: int
    segments: tuple[Segment, ...]
    check: str = ""

    @property
    def right_check(self) -> str:
        return hashlib.sha256(repr((self.applied, self.segments)).encode()).hexdigest()


class Engine:
    """Writes a store; each ``write`` adds a segment, and now and then all become one."""

    def __init__(self, folder: Path) -> None:
        (folder / "meta").mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._index = Index(-1, ())
        if (folder / INDEX).exists():
            self._index = msgspec.json.decode((folder / INDEX).read_bytes(), type=Index)
        self._number = max((int(segment.name[4:10]) for segment in self._index.segments), default=0)

    @property
    def next(self) -> int:
        return self._index.applied + 1

    def write(self, count: int) -> None:
        pairs: Pairs = {}
        last = self._index.applied + count
        for number in range(self.next, last + 1):
            done = operation(number)
            pairs[done.key] = done.value
        segments = (*self._index.segments, self._segment(pairs))
        if len(segments) > _MOST_SEGMENTS:
            whole: Pairs = {}
            for segment in segments:
                whole |= _decode((self._folder / segment.name).read_bytes())
            segments = (self._segment(whole),)
        dropped = {*self._index.segments} - {*segments}
        index = Index(last, segments)
        self._index = Index(last, segments, index.right_check)
        self._replace(INDEX, msgspec.json.encode(self._index))
        with (self._folder / OFFSET).open(
            "r+b" if (self._folder / OFFSET).exists() else "wb"
        ) as at:
            at.write(b"%012d" % last)
        for segment in dropped:
            (self._folder / segment.name).unlink()

    def _segment(self, pairs: Pairs) -> Segment:
        self._number += 1
        name = f"seg-{self._number:06}.log"
        body = msgspec.msgpack.encode(sorted(pairs.items()))
        self._replace(name, body)
        return Segment(name, hashlib.sha256(body).hexdigest())

    def _replace(self, name: str, body: bytes) -> None:
        (self._folder / "LOCK").write_bytes(body)
        (self._folder / "LOCK").rename(self._folder / name)


class SegmentMaker:
    """Implements StoreMaker of the backend contract; reads stores as their engine would."""

    exact = False

    def __init__(self, work_dir: Path) -> None:
        self._work_dir = work_dir

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        location = locate(task_dir)
        self.extend(location, applied)
        return location

    def extend(self, location: StoreLocation, applied: int) -> None:
        engine = Engine(location.path)
        while engine.next <= applied:
            engine.write(min(500, applied + 1 - engine.next))

    @contextmanager
    def writing(self, task_dir: Path) -> Iterator[LiveWriter]:
        location = locate(task_dir)
        live = LiveWriter(location, "tests.support.segments", [str(location.path)], self._work_dir)
        try:
            live.wait_begun(2000)
            yield live
        finally:
            live.crash()

    def applied(self, view: StoreView) -> int | None:
        noted = files_of(view).get(OFFSET)
        if noted is None:
            return None
        if len(noted) != 12 or not noted.isdigit():
            raise SourceDamagedError(f"{OFFSET} is damaged")
        return int(noted)

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        files = files_of(view)
        try:
            index = msgspec.json.decode(files[INDEX], type=Index)
            if index.check != index.right_check:
                raise SourceDamagedError(f"{INDEX} is damaged")
            content: Pairs = {}
            for segment in index.segments:
                body = files[segment.name]
                if hashlib.sha256(body).hexdigest() != segment.sha256:
                    raise SourceDamagedError(f"{segment.name} is damaged")
                content |= _decode(body)
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SourceDamagedError(f"the store does not open: {error}") from error
        return {key: value for key, value in content.items() if value is not None}


def files_of(view: StoreView) -> Mapping[str, bytes]:
    """Put the files of a folder together from the entries of its view."""
    (database,) = view.databases
    files: dict[str, bytes] = defaultdict(bytes)
    for key, piece in view.scan(database, "default"):
        files[os.fsdecode(key[:-9])] += piece
    return files


def locate(task_dir: Path) -> StoreLocation:
    return StoreLocation(
        store=StoreId("orders", "0_1", "counts"),
        layout="kafka-streams",
        backend="files",
        store_type="custom",
        generation="kafka-streams-4.3",
        task_dir=task_dir,
        root="counts",
    )


def _decode(body: bytes) -> Pairs:
    return dict(msgspec.msgpack.decode(body, type=list[tuple[bytes, bytes | None]]))


def _write_for_ever(folder: Path, progress: Path) -> None:
    engine = Engine(folder)
    with progress.open("wb", buffering=0) as reached:
        while True:
            os.pwrite(reached.fileno(), (engine.next + _BATCH - 1).to_bytes(8, "big"), 0)
            engine.write(_BATCH)
            time.sleep(0.02)


if __name__ == "__main__":
    _write_for_ever(Path(sys.argv[1]), Path(sys.argv[2]))

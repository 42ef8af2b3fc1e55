"""What the application may do between any two steps of an attempt: it is noticed, or harmless."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.backends.rocksdb import RocksDBBackend
from snapstore.backends.rocksdb.databases import Found
from snapstore.backends.rocksdb.freeze import Freezer, UnsettledError
from snapstore.backends.rocksdb.held import Held, Pin
from snapstore.backends.rocksdb.opened import OpenDatabase, OpenError
from snapstore.errors import StoreChangedError
from snapstore.testing.backend_contract import replay
from tests.support.rocksdb import (
    LOGGED,
    NOTED,
    OFFSETS,
    UNLOGGED,
    Shape,
    Store,
    locate,
    make_database,
)

Step = str
_STEPS = ("held a table", "copied the MANIFEST", "copied a log", "read CURRENT")


class InterruptedFreezer(Freezer):
    """Lets the application act once, right after the first step of that name."""

    def __init__(self, folder: Path, view: Path, step: Step, act: Callable[[], None]) -> None:
        super().__init__(Found("counts", folder), view, self._hold_and_tell, 0)
        self._step = step
        self._act: Callable[[], None] | None = act

    def _told(self, step: Step) -> None:
        if step == self._step and self._act is not None:
            act, self._act = self._act, None
            act()

    def _hold_and_tell(self, path: str) -> Held:
        pin = Pin(path)
        self._told("held a table")
        return pin

    def _read_current(self, listed: object) -> bytes:
        current = super()._read_current(listed)  # type: ignore[arg-type]
        self._told("read CURRENT")
        return current

    def _copy_open(self, fd: int, name: str, size: int) -> None:
        super()._copy_open(fd, name, size)
        self._told("copied the MANIFEST" if name.startswith("MANIFEST") else "copied a log")


def _flush(store: Store) -> None:
    store.write(40)
    store.flush()


def _flush_twice(store: Store) -> None:
    _flush(store)
    _flush(store)


def _write(store: Store) -> None:
    store.write(40)


def _compact(store: Store) -> None:
    _flush(store)
    store.compact()


@pytest.mark.parametrize("act", [_write, _flush, _flush_twice, _compact])
@pytest.mark.parametrize(
    ("shape", "step"),
    [
        *(pytest.param(LOGGED, step, id=f"{step}, with log") for step in _STEPS),
        *(
            pytest.param(UNLOGGED, step, id=f"{step}, without log")
            for step in _STEPS
            if step != "copied a log"
        ),
    ],
)
def test_an_attempt_that_was_interrupted_fails_or_holds_exactly_what_it_notes(
    tmp_path: Path, shape: Shape, step: Step, act: Callable[[Store], None]
) -> None:
    store = Store(tmp_path / "counts", shape)
    for _ in range(4):
        _flush(store)
    store.write(40)
    first = store.next
    view = tmp_path / "view"
    view.mkdir()
    freezer = InterruptedFreezer(tmp_path / "counts", view, step, lambda: act(store))
    try:
        frozen = freezer.freeze()
        database = OpenDatabase(view, "counts")
    except (UnsettledError, OpenError):
        return
    finally:
        last = store.next
        store.close()
    contents: dict[bytes, bytes] = {}
    for family in database.families:
        if family != OFFSETS:
            contents |= dict(database.scan(family))
    noted = int.from_bytes(dict(database.scan(OFFSETS))[NOTED], "big")
    database.close()
    for table in frozen.tables.values():
        table.free()
    # Only the log, where there is one, holds what was not flushed.
    assert first - (1 if shape.log else 41) <= noted < last
    assert contents == replay({}, 0, noted)


def test_logs_that_came_and_went_while_the_manifest_was_read_are_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path / "counts", LOGGED)
    store.write(40)
    view = tmp_path / "view"
    view.mkdir()
    freezer = InterruptedFreezer(
        tmp_path / "counts", view, "copied the MANIFEST", lambda: _flush_twice(store)
    )
    with pytest.raises(UnsettledError, match="came and went"):
        freezer.freeze()
    store.close()


def test_a_manifest_that_is_replaced_during_an_attempt_is_noticed(tmp_path: Path) -> None:
    Store(tmp_path / "counts").close()
    view = tmp_path / "view"
    view.mkdir()
    freezer = InterruptedFreezer(
        tmp_path / "counts",
        view,
        "copied the MANIFEST",
        lambda: Store(tmp_path / "counts").close(),
    )
    with pytest.raises(UnsettledError, match="a new MANIFEST"):
        freezer.freeze()


@pytest.mark.parametrize("step", ["held a table", "copied the MANIFEST", "read CURRENT"])
def test_another_folder_of_the_same_name_is_noticed(tmp_path: Path, step: Step) -> None:
    """Two copies of a database may have tables of one name and size with different bytes."""
    folder = tmp_path / "counts"
    make_database(folder, 100)
    shutil.copytree(folder, tmp_path / "other")
    view = tmp_path / "view"
    view.mkdir()

    def replace() -> None:
        folder.rename(tmp_path / "aside")
        (tmp_path / "other").rename(folder)

    with pytest.raises(UnsettledError, match="replaced"):
        InterruptedFreezer(folder, view, step, replace).freeze()


def test_a_current_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """RocksDB puts it into place by a rename; who copies a database there does not."""
    current = make_database(tmp_path / "counts", 100) / "CURRENT"
    content = current.read_bytes()
    current.write_bytes(b"")

    def go_on(seconds: float) -> None:
        current.write_bytes(content)

    backend = RocksDBBackend(sleep=go_on)
    with backend.capture(locate(tmp_path, "counts")) as capture:
        assert capture.view.databases == ("counts",)


def test_a_removal_that_makes_a_pause_is_no_damage(tmp_path: Path) -> None:
    """A busy machine may leave the application waiting for a third of a second."""
    folder = make_database(tmp_path / "counts", 100)
    (folder / "CURRENT").unlink()
    slept: list[float] = []

    def go_on(seconds: float) -> None:
        slept.append(seconds)
        if sum(slept) > 0.3:
            shutil.rmtree(folder)

    backend = RocksDBBackend(sleep=go_on, draw=lambda: 0.5)
    with (
        pytest.raises(StoreChangedError, match="removed"),
        backend.capture(locate(tmp_path, "counts")),
    ):
        pytest.fail("it was captured")

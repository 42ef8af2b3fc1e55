"""What every layout must do: derive from LayoutContract, and give it the two fixtures.

class TestMyLayout(LayoutContract):
    @pytest.fixture
    def layout(self) -> Layout:
        return MyLayout(MyLayout.Options())

    @pytest.fixture
    def maker(self) -> StateMaker:
        return MyMaker()
"""

import fcntl
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from snapstore.errors import StoreInUseError, StoreNotFoundError, UnsafePathError
from snapstore.model.identity import StoreId
from snapstore.model.snapshot import Description, Position
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import FileNote, Layout, Note, StoreBackend, StoreView

Positions = tuple[ChangelogPosition, ...]


class StateMaker(Protocol):
    """Makes real state of a stopped application, and stands in for the running one."""

    backend: StoreBackend
    """Opens the stores of that state."""

    def make(self, state_dir: Path) -> Mapping[StoreId, Positions]:
        """Leave state below an empty directory; return what each store has applied."""
        ...

    def running(self, state_dir: Path) -> AbstractContextManager[None]:
        """Hold, from a process of its own, the locks that the running application holds.

        Entering fails with AssertionError when somebody else holds them.
        """
        ...


def describe(location: StoreLocation, positions: Sequence[ChangelogPosition]) -> Description:
    """Return what a snapshot of that store would say of itself."""
    return Description(
        store=location.store,
        layout=location.layout,
        backend=location.backend,
        store_type=location.store_type,
        generation=location.generation,
        root=location.root,
        databases=(),
        positions=tuple(Position(position=one) for one in positions),
        captured_at=datetime(2024, 2, 29, 12, tzinfo=UTC),
        source="closed",
        instance="here",
        run="run-1",
        writer="0",
    )


def carry_out(notes: Sequence[Note], task_dir: Path, backend: StoreBackend) -> None:
    """Do what a plan of notes says, as a restore does."""
    for note in notes:
        if not isinstance(note, FileNote):
            backend.write_entries(task_dir / note.database, note.family, note.entries)
        elif note.content is None:
            (task_dir / note.name).unlink()
        else:
            (task_dir / note.name).write_bytes(note.content)


class LayoutContract:
    """The promises of Layout, each as a test."""

    @pytest.fixture
    def layout(self) -> Layout:
        raise NotImplementedError

    @pytest.fixture
    def maker(self) -> StateMaker:
        raise NotImplementedError

    @pytest.fixture
    def state_dir(self, tmp_path: Path) -> Path:
        path = tmp_path / "state"
        path.mkdir()
        return path

    @pytest.fixture
    def made(self, maker: StateMaker, state_dir: Path) -> Mapping[StoreId, Positions]:
        return maker.make(state_dir)

    @pytest.fixture
    def found(
        self, layout: Layout, state_dir: Path, made: Mapping[StoreId, Positions]
    ) -> tuple[StoreLocation, ...]:
        application = next(iter(made)).application
        return layout.discover(state_dir, application).locations

    def test_every_store_is_found_in_natural_order(
        self, found: tuple[StoreLocation, ...], made: Mapping[StoreId, Positions]
    ) -> None:
        assert [one.store for one in found] == sorted(made, key=lambda store: store.order)

    def test_every_store_is_where_its_location_says(
        self, found: tuple[StoreLocation, ...], layout: Layout
    ) -> None:
        for location in found:
            assert location.path.is_dir()
            assert location.layout == layout.name
            assert all((location.task_dir / name).is_file() for name in location.side_files)

    def test_discovery_and_questions_only_read(
        self, layout: Layout, state_dir: Path, found: tuple[StoreLocation, ...]
    ) -> None:
        before = _look(state_dir)
        layout.discover(state_dir, found[0].store.application)
        layout.which_in_use(found)
        for location in found:
            layout.noted_offsets(location)
        assert _look(state_dir) == before

    def test_a_missing_state_directory_is_not_an_empty_one(
        self, layout: Layout, state_dir: Path
    ) -> None:
        with pytest.raises(StoreNotFoundError):
            layout.discover(state_dir / "nowhere", "orders")

    def test_the_positions_are_those_that_the_application_has_applied(
        self,
        layout: Layout,
        maker: StateMaker,
        found: tuple[StoreLocation, ...],
        made: Mapping[StoreId, Positions],
    ) -> None:
        for location in found:
            assert _positions(layout, maker, location) == made[location.store], location.store

    def test_a_stopped_application_does_not_use_its_stores(
        self, layout: Layout, found: tuple[StoreLocation, ...]
    ) -> None:
        assert layout.which_in_use(found) == ()

    def test_a_running_application_is_seen_and_asking_does_not_take_its_place(
        self,
        layout: Layout,
        maker: StateMaker,
        state_dir: Path,
        found: tuple[StoreLocation, ...],
    ) -> None:
        with maker.running(state_dir):
            assert layout.which_in_use(found) == found
            assert layout.in_use(found[0])
        assert not layout.in_use(found[0])

    def test_asking_drops_no_lock_of_this_process(
        self, layout: Layout, state_dir: Path, found: tuple[StoreLocation, ...]
    ) -> None:
        with _locked(state_dir):
            first = layout.which_in_use(found)
            assert first == found
            assert layout.which_in_use(found) == first

    def test_a_running_application_is_not_held(
        self,
        layout: Layout,
        maker: StateMaker,
        state_dir: Path,
        found: tuple[StoreLocation, ...],
    ) -> None:
        description = describe(found[0], ())
        with (
            maker.running(state_dir),
            pytest.raises(StoreInUseError),
            layout.hold(state_dir, description),
        ):
            pytest.fail("held beside the running application")

    def test_nobody_starts_while_it_is_held(
        self,
        layout: Layout,
        maker: StateMaker,
        state_dir: Path,
        found: tuple[StoreLocation, ...],
    ) -> None:
        description = describe(found[0], ())
        with layout.hold(state_dir, description):
            with pytest.raises(AssertionError), maker.running(state_dir):
                pass
            with pytest.raises(StoreInUseError), layout.hold(state_dir, description):
                pass
        with maker.running(state_dir):
            assert layout.in_use(found[0])

    def test_a_task_belongs_where_it_was_found(
        self, layout: Layout, state_dir: Path, found: tuple[StoreLocation, ...]
    ) -> None:
        for location in found:
            there = layout.task_dir(state_dir, describe(location, ()))
            assert there.resolve() == location.task_dir.resolve()

    @pytest.mark.parametrize("name", ["..", "../..", "/etc", "a/../../b", ""])
    def test_no_name_leads_out_of_the_target(
        self, layout: Layout, state_dir: Path, found: tuple[StoreLocation, ...], name: str
    ) -> None:
        for store in (
            StoreId(name, found[0].store.task, found[0].store.store),
            StoreId(found[0].store.application, name, found[0].store.store),
        ):
            description = msgspec.structs.replace(describe(found[0], ()), store=store)
            try:
                there = layout.task_dir(state_dir, description)
            except UnsafePathError:
                continue
            assert there.resolve().is_relative_to(state_dir.resolve())

    def test_a_noted_position_is_read_back(
        self,
        layout: Layout,
        maker: StateMaker,
        state_dir: Path,
        found: tuple[StoreLocation, ...],
        made: Mapping[StoreId, Positions],
    ) -> None:
        location = next(one for one in found if made[one.store])
        older = tuple(
            ChangelogPosition(position.changelog, position.applied_offset - 1)
            for position in made[location.store]
        )
        copied = state_dir.with_name("restored") / state_dir.name
        shutil.copytree(state_dir, copied, symlinks=True)
        moved = layout.discover(copied, location.store.application).locations[found.index(location)]
        description = describe(moved, older)
        notes = _notes(layout, maker, moved, description)
        assert notes
        carry_out(notes, moved.task_dir, maker.backend)
        assert _positions(layout, maker, moved) == older
        assert _notes(layout, maker, moved, description) == ()

    def test_noting_one_store_leaves_the_others_as_they_were(
        self,
        layout: Layout,
        maker: StateMaker,
        found: tuple[StoreLocation, ...],
        made: Mapping[StoreId, Positions],
    ) -> None:
        location = next(one for one in found if made[one.store])
        notes = _notes(layout, maker, location, describe(location, made[location.store]))
        carry_out(notes, location.task_dir, maker.backend)
        assert {one.store: _positions(layout, maker, one) for one in found} == made


def _positions(layout: Layout, maker: StateMaker, location: StoreLocation) -> Positions:
    noted = layout.noted_offsets(location)
    with maker.backend.open_view(location.task_dir, location.root) as view:
        return layout.positions(location, noted, view, running=False)


def _notes(
    layout: Layout, maker: StateMaker, location: StoreLocation, description: Description
) -> tuple[Note, ...]:
    with ExitStack() as stack:
        views: list[StoreView] = [
            stack.enter_context(maker.backend.open_view(location.task_dir, location.root))
        ]
        return layout.notes(location.task_dir, [description], views)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold POSIX locks of this process on every file below a folder."""
    with ExitStack() as stack:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            fcntl.lockf(stack.enter_context(path.open("rb+")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _look(folder: Path) -> dict[str, tuple[int, int, int]]:
    look = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        look[str(path.relative_to(folder))] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return look

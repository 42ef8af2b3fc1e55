"""What every store backend must do: derive from BackendContract, and give it the two fixtures.

    class TestMyBackend(BackendContract):
        @pytest.fixture
        def backend(self) -> StoreBackend:
            return MyBackend(MyBackend.Options())

        @pytest.fixture
        def maker(self) -> StoreMaker:
            return MyMaker()

The stores that the maker makes hold one *history*: numbered operations, the same for everybody, as
a changelog would hold them. A store notes the number of the last operation it has applied.
"""

import hashlib
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from snapstore.errors import StoreNotFoundError, UnsafePathError
from snapstore.model.store import CapturedFile, StoreLocation
from snapstore.ports import Capture, StoreBackend, StoreView

_KEYS = 997
_OPEN = Path("/proc/self/fd")


class Operation(msgspec.Struct, frozen=True):
    """A put, or a deletion (``value`` None)."""

    key: bytes
    value: bytes | None


def operation(number: int) -> Operation:
    """Return that operation of the history, counted from 0."""
    key = b"key-%05d" % (number * 7919 % _KEYS)
    if number % 11 == 10:
        return Operation(key, None)
    return Operation(key, b"value-%d-" % number + b"." * 100)


def replay(contents: dict[bytes, bytes], first: int, last: int) -> dict[bytes, bytes]:
    """Return the contents after the operations from ``first`` to ``last``, both included."""
    after = dict(contents)
    for number in range(first, last + 1):
        done = operation(number)
        if done.value is None:
            after.pop(done.key, None)
        else:
            after[done.key] = done.value
    return after


class Writer(Protocol):
    """An application at work on a store, in a process of its own."""

    location: StoreLocation

    def begun(self) -> int:
        """Return a number that no operation begun so far exceeds."""
        ...

    def crash(self) -> None:
        """End it at once, as SIGKILL does."""
        ...


class StoreMaker(Protocol):
    """Makes real stores of one type, below a task directory that exists."""

    exact: bool
    """Whether a store never holds operations after the number that it has noted."""

    def make(self, task_dir: Path, applied: int) -> StoreLocation:
        """Make a store that holds the operations up to ``applied``, and close it."""
        ...

    def extend(self, location: StoreLocation, applied: int) -> None:
        """Go on with a closed store up to ``applied``, and close it again."""
        ...

    def writing(self, task_dir: Path) -> AbstractContextManager[Writer]:
        """Run an application that goes through the history from 0, until the block is left."""
        ...

    def applied(self, view: StoreView) -> int | None:
        """Return the number that the store has noted; None before the first."""
        ...

    def contents(self, view: StoreView) -> dict[bytes, bytes]:
        """Return what the store holds of the history."""
        ...


def materialise(capture: Capture, target: Path) -> None:
    """Write the files of a capture into another task directory, as a restore would."""
    for file in capture.files:
        path = target / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(read_whole(file))


def read_whole(file: CapturedFile) -> bytes:
    """Read a captured file in pieces, as an upload does."""
    pieces = []
    position = 0
    while position < file.size:
        piece = file.source.pread(1 << 16, position)
        assert piece, f"{file.name} ends after {position} of {file.size} bytes"
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def look_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return what must not change in a source: names, inodes, sizes and times."""
    look = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        look[str(path.relative_to(folder))] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return look


class BackendContract:
    """The promises of StoreBackend, each as a test. ``captures`` are taken of a busy store."""

    captures = 20

    @pytest.fixture
    def backend(self) -> StoreBackend:
        raise NotImplementedError

    @pytest.fixture
    def maker(self) -> StoreMaker:
        raise NotImplementedError

    @pytest.fixture
    def task_dir(self, tmp_path: Path) -> Path:
        folder = tmp_path / "source"
        folder.mkdir()
        return folder

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        folder = tmp_path / "target"
        folder.mkdir()
        return folder

    def test_a_closed_store_comes_back_whole(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            materialise(capture, target)
        with backend.open_view(target, location.root) as view:
            assert maker.applied(view) == 2999
            assert maker.contents(view) == replay({}, 0, 2999)

    def test_a_store_captured_while_it_is_written_never_lacks_what_it_notes(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, tmp_path: Path
    ) -> None:
        seen = []
        with maker.writing(task_dir) as writer:
            for index in range(self.captures):
                copy = tmp_path / f"copy-{index}"
                with backend.capture(writer.location) as capture:
                    materialise(capture, copy)
                begun = writer.begun()
                with backend.open_view(copy, writer.location.root) as view:
                    seen.append(self._assert_complete(maker, view, begun))
                time.sleep(0.02)
        assert len(set(seen)) > 1, "the application did not write meanwhile"
        assert seen == sorted(seen)

    def test_a_store_whose_application_crashed_never_lacks_what_it_notes(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        with maker.writing(task_dir) as writer:
            time.sleep(0.5)
            writer.crash()
            with backend.capture(writer.location) as capture:
                materialise(capture, target)
            begun = writer.begun()
        with backend.open_view(target, writer.location.root) as view:
            assert self._assert_complete(maker, view, begun) >= 0

    def test_the_view_of_a_capture_sees_what_its_files_hold(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        with maker.writing(task_dir) as writer, backend.capture(writer.location) as capture:
            seen = (maker.applied(capture.view), maker.contents(capture.view))
            databases = capture.view.databases
            materialise(capture, target)
        with backend.open_view(target, writer.location.root) as view:
            assert (maker.applied(view), maker.contents(view)) == seen
            assert view.databases == databases

    def test_files_are_named_below_the_root_and_read_to_their_size(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = maker.make(task_dir, 999)
        with backend.capture(location) as capture:
            names = [file.name for file in capture.files]
            assert len(names) == len(set(names))
            for file in capture.files:
                assert (
                    file.name in location.side_files
                    or location.root == "."
                    or (file.name.startswith(f"{location.root}/"))
                )
                assert not {"", ".", ".."} & set(file.name.split("/"))
                assert len(read_whole(file)) == file.size
                assert file.source.pread(10, file.size) == b""
                assert file.source.pread(10, max(0, file.size - 3)) == read_whole(file)[-3:]

    def test_a_file_of_the_same_identity_has_the_same_bytes_in_the_next_capture(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        first = self._hashes(backend, location)
        again = self._hashes(backend, location)
        assert again == first
        maker.extend(location, 3999)
        third = self._hashes(backend, location)
        assert third != first or not first, "its files have changed"
        for identity in first.keys() & third.keys():
            assert third[identity] == first[identity]

    def test_leaving_a_capture_frees_every_descriptor(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        before = len(list(_OPEN.iterdir()))
        with backend.capture(location) as capture:
            maker.contents(capture.view)
        assert len(list(_OPEN.iterdir())) == before
        with backend.capture(location) as capture:
            for file in capture.files:
                read_whole(file)
                capture.release(file)
                capture.release(file)
            assert len(list(_OPEN.iterdir())) == before
        with pytest.raises(RuntimeError, match="left"), backend.capture(location):
            raise RuntimeError("left in the middle")
        assert len(list(_OPEN.iterdir())) == before

    def test_the_source_is_only_read(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        before = look_of(task_dir)
        with backend.capture(location) as capture:
            maker.contents(capture.view)
            for file in capture.files:
                read_whole(file)
        with backend.open_view(task_dir, location.root) as view:
            maker.contents(view)
        assert look_of(task_dir) == before

    def test_a_store_that_is_not_there_is_not_found(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = msgspec.structs.replace(maker.make(task_dir, 9), root="elsewhere")
        with pytest.raises(StoreNotFoundError), backend.capture(location):
            pass
        with pytest.raises(StoreNotFoundError), backend.open_view(task_dir, "elsewhere"):
            pass

    def test_an_empty_folder_is_no_state(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = msgspec.structs.replace(maker.make(task_dir, 9), root="empty")
        (task_dir / "empty").mkdir()
        with pytest.raises(StoreNotFoundError), backend.capture(location):
            pass

    @pytest.mark.parametrize("root", ["..", "a/../../b", "/etc", "a//b", "a\x08b", "a\nb", ""])
    def test_a_root_that_leads_outside_or_has_a_hostile_name_is_refused(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, root: str
    ) -> None:
        location = msgspec.structs.replace(maker.make(task_dir, 9), root=root)
        with pytest.raises(UnsafePathError), backend.capture(location):
            pass

    def test_entries_are_noted_without_touching_the_other_contents(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            materialise(capture, target)
        with backend.open_view(target, location.root) as view:
            database = view.databases[0]
            families = view.families(database)
        family = families[-1]
        backend.write_entries(target / database, family, {b"noted": b"1", b"gone": b"2"})
        backend.write_entries(target / database, family, {b"noted": b"3", b"gone": None})
        with backend.open_view(target, location.root) as view:
            entries = view.entries(database, family)
            assert entries[b"noted"] == b"3"
            assert b"gone" not in entries
            assert view.families(database) == families
            contents = maker.contents(view)
            contents.pop(b"noted", None)
            assert contents == replay({}, 0, 2999)

    def _assert_complete(self, maker: StoreMaker, view: StoreView, begun: int) -> int:
        """Check a copy whose application had begun the operations up to ``begun`` by then."""
        applied = maker.applied(view)
        contents = maker.contents(view)
        noted = -1 if applied is None else applied
        expected = replay({}, 0, noted)
        if maker.exact:
            assert contents == expected
            return noted
        later: dict[bytes, set[bytes | None]] = {}
        for number in range(noted + 1, begun + 1):
            done = operation(number)
            later.setdefault(done.key, set()).add(done.value)
        for key in contents.keys() | expected.keys():
            value = contents.get(key)
            assert value == expected.get(key) or value in later.get(key, set()), key
        return noted

    def _hashes(
        self, backend: StoreBackend, location: StoreLocation
    ) -> dict[tuple[str, object], str]:
        with backend.capture(location) as capture:
            return {
                (file.name, file.identity): hashlib.sha256(read_whole(file)).hexdigest()
                for file in capture.files
                if file.identity is not None
            }

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
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from snapstore.errors import CaptureError, RefusedError, StoreNotFoundError, UnsafePathError
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreBackend
from snapstore.testing.backend_copies import CopyContract
from snapstore.testing.backend_history import Operation as Operation
from snapstore.testing.backend_history import StoreMaker as StoreMaker
from snapstore.testing.backend_history import Writer as Writer
from snapstore.testing.backend_history import digests_of as digests_of
from snapstore.testing.backend_history import look_of as look_of
from snapstore.testing.backend_history import materialise as materialise
from snapstore.testing.backend_history import open_files as open_files
from snapstore.testing.backend_history import operation as operation
from snapstore.testing.backend_history import read_whole as read_whole
from snapstore.testing.backend_history import replay as replay

_WRITES_WITHIN_S = 300
"""How long the captures of a busy store may take until what it has noted has moved on."""


class BackendContract(CopyContract):
    """The promises of StoreBackend, each as a test.

    ``captures`` are taken of a busy store. ``writable``: entries can be written into a store (see
    ``StoreBackend.write_entries``); else that must be refused.
    """

    captures = 20
    writable = True

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
        seen: list[int] = []
        copy = tmp_path / "copy"
        with maker.writing(task_dir) as writer:
            patience = time.monotonic() + _WRITES_WITHIN_S
            while len(seen) < self.captures or len(set(seen)) < 2:
                assert time.monotonic() < patience, "the application did not write meanwhile"
                with backend.capture(writer.location) as capture:
                    materialise(capture, copy)
                begun = writer.begun()
                with backend.open_view(copy, writer.location.root) as view:
                    seen.append(self._assert_complete(maker, view, begun, exact=maker.exact))
                shutil.rmtree(copy)
                time.sleep(0.02)
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
            assert self._assert_complete(maker, view, begun, exact=maker.exact) >= 0

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
        before = open_files()
        with backend.capture(location) as capture:
            maker.contents(capture.view)
        assert open_files() == before
        with backend.capture(location) as capture:
            for file in capture.files:
                read_whole(file)
                capture.release(file)
                capture.release(file)
            # A backend may keep folders of its own open until it is left.
            opened = set(open_files()) - set(before)
            assert not [each for each in opened if each.startswith(str(task_dir))]
        with pytest.raises(RuntimeError, match="left"), backend.capture(location):
            raise RuntimeError("left in the middle")
        assert open_files() == before

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
        if not self.writable:
            before = look_of(target)
            with pytest.raises(RefusedError):
                backend.write_entries(target / database, family, {b"noted": b"1"})
            assert look_of(target) == before
            return
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

    def test_entries_come_in_key_order_and_digest_alike_in_every_copy(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            digests = [digests_of(capture.view)]
            materialise(capture, target)
        for folder in (task_dir, target):
            with backend.open_view(folder, location.root) as view:
                digests.append(digests_of(view))
                for database in view.databases:
                    for family in view.families(database):
                        keys = [key for key, _ in view.scan(database, family)]
                        assert keys == sorted(set(keys))
        assert digests[0] == digests[1] == digests[2]
        maker.extend(location, 3009)
        with backend.open_view(task_dir, location.root) as view:
            assert digests_of(view) != digests[0]

    def test_little_is_new_after_a_small_change(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            known = {hashlib.sha256(read_whole(file)).digest() for file in capture.files}
        maker.extend(location, 3004)
        with backend.capture(location) as capture:
            contents = [read_whole(file) for file in capture.files]
        new = [each for each in contents if hashlib.sha256(each).digest() not in known]
        assert sum(map(len, new)) < sum(map(len, contents)) / 2

    def test_a_link_in_place_of_a_file_is_not_followed(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, tmp_path: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        refused = 0
        for path in [path for path in location.path.rglob("*") if path.is_file()]:
            shutil.move(path, tmp_path / "outside")
            path.symlink_to(tmp_path / "outside")
            content = (tmp_path / "outside").read_bytes()
            try:
                with backend.capture(location) as capture:
                    assert all(read_whole(file) != content for file in capture.files)
            except (CaptureError, StoreNotFoundError):
                refused += 1
            path.unlink()
            shutil.move(tmp_path / "outside", path)
        assert refused

    @pytest.mark.parametrize("kind", ["link", "pipe", "name with a line feed", "name not UTF-8"])
    def test_what_no_snapshot_can_hold_is_refused_or_left_out(
        self,
        backend: StoreBackend,
        maker: StoreMaker,
        task_dir: Path,
        tmp_path: Path,
        kind: str,
    ) -> None:
        location = maker.make(task_dir, 999)
        secret = b"outside of the store" * 100
        (tmp_path / "secret").write_bytes(secret)
        match kind:
            case "link":
                (location.path / "stray").symlink_to(tmp_path / "secret")
            case "pipe":
                os.mkfifo(location.path / "stray")
            case "name with a line feed":
                (location.path / "stray\n").write_bytes(secret)
            case _:
                (location.path / os.fsdecode(b"stray\xff")).write_bytes(secret)
        with suppress(CaptureError, UnsafePathError), backend.capture(location) as capture:
            assert all("stray" not in file.name for file in capture.files)
            assert all(read_whole(file) != secret for file in capture.files)

    def _hashes(
        self, backend: StoreBackend, location: StoreLocation
    ) -> dict[tuple[str, object], str]:
        with backend.capture(location) as capture:
            return {
                (file.name, file.identity): hashlib.sha256(read_whole(file)).hexdigest()
                for file in capture.files
                if file.identity is not None
            }

"""What must hold of copies of a store: whole or refused, and of one moment.

Part of the backend contract; see ``snapstore.testing.backend_contract``.
"""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from snapstore.errors import CaptureError, StoreNotFoundError
from snapstore.model.store import StoreLocation
from snapstore.ports import StoreBackend, StoreView
from snapstore.testing.backend_history import StoreMaker, materialise, operation, replay
from snapstore.testing.child import in_child


class CopyContract:
    """The fixtures of the backend contract, and its tests of copies that went wrong.

    ``checksummed``: the store itself notices that a byte of it has changed. Where it does not, only
    the hashes that the repository keeps of its files do. ``maps_files``: its engine maps files into
    memory (LMDB does), so damaged copies are looked at in a process of their own: where such a one
    dies of SIGBUS the test fails, and the run goes on. The engine has to survive a fork.
    """

    checksummed = True
    maps_files = False

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

    def test_a_copy_that_lacks_a_file_never_passes_for_the_whole(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, tmp_path: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        for number, name in enumerate(self._copied(backend, location, tmp_path / "whole")):
            copy = tmp_path / str(number)
            shutil.copytree(tmp_path / "whole", copy)
            (copy / name).unlink()
            self._assert_whole_or_refused(backend, maker, location, copy)

    @pytest.mark.parametrize("harm", ["cut", "spoilt"])
    def test_a_copy_with_a_damaged_file_never_passes_for_the_whole(
        self,
        backend: StoreBackend,
        maker: StoreMaker,
        task_dir: Path,
        tmp_path: Path,
        harm: str,
    ) -> None:
        location = maker.make(task_dir, 2999)
        for number, name in enumerate(self._copied(backend, location, tmp_path / "whole")):
            copy = tmp_path / str(number)
            shutil.copytree(tmp_path / "whole", copy)
            content = bytearray((copy / name).read_bytes())
            middle = len(content) // 2
            if harm == "cut":
                del content[middle:]
            elif content:
                content[middle] ^= 0x55
            (copy / name).write_bytes(content)
            if harm == "spoilt" and not self.checksummed:
                self._look(lambda: self._read(backend, maker, location, copy))  # noqa: B023
            else:
                self._assert_whole_or_refused(backend, maker, location, copy)

    def test_an_installation_that_was_interrupted_is_completed_by_the_next(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            materialise(capture, target)
            for file in capture.files[::2]:
                (target / file.name).unlink()
            for file in capture.files[1::2]:
                os.truncate(target / file.name, file.size // 3)
            materialise(capture, target)
        with backend.open_view(target, location.root) as view:
            assert maker.contents(view) == replay({}, 0, 2999)

    def test_a_store_that_is_removed_while_it_is_held_is_read_to_its_end(
        self, backend: StoreBackend, maker: StoreMaker, task_dir: Path, target: Path
    ) -> None:
        location = maker.make(task_dir, 2999)
        with backend.capture(location) as capture:
            shutil.rmtree(location.path)
            materialise(capture, target)
        with backend.open_view(target, location.root) as view:
            assert maker.applied(view) == 2999
            assert maker.contents(view) == replay({}, 0, 2999)

    def _copied(self, backend: StoreBackend, location: StoreLocation, target: Path) -> list[str]:
        """Write a capture out, and return the names of its files."""
        with backend.capture(location) as capture:
            materialise(capture, target)
            return [file.name for file in capture.files]

    def _assert_whole_or_refused(
        self, backend: StoreBackend, maker: StoreMaker, location: StoreLocation, copy: Path
    ) -> None:
        """Check that a copy either cannot be read, or holds all that it says it holds.

        It may hold more: what the shortened list of its files still names was not written at once.
        """

        def look() -> None:
            with (
                suppress(CaptureError, StoreNotFoundError),
                backend.open_view(copy, location.root) as view,
            ):
                self._assert_complete(maker, view, 2999, exact=False)

        self._look(look)

    def _look(self, look: Callable[[], object]) -> None:
        """Look into a damaged copy, where that can kill in a process of its own."""
        if self.maps_files:
            in_child(look)
        else:
            look()

    def _read(
        self, backend: StoreBackend, maker: StoreMaker, location: StoreLocation, copy: Path
    ) -> None:
        with suppress(CaptureError), backend.open_view(copy, location.root) as view:
            maker.contents(view)

    def _assert_complete(
        self, maker: StoreMaker, view: StoreView, begun: int, *, exact: bool
    ) -> int:
        """Check a copy whose application had begun the operations up to ``begun`` by then."""
        applied = maker.applied(view)
        contents = maker.contents(view)
        noted = -1 if applied is None else applied
        expected = replay({}, 0, noted)
        if exact:
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

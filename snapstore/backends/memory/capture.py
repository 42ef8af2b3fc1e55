"""The files of one store, held open while they are read."""

from collections.abc import Sequence
from pathlib import Path

from snapstore.backends.memory.view import MemoryView
from snapstore.errors import CaptureError
from snapstore.model.folder_name import check_folder, child
from snapstore.model.pinned import PinnedFile
from snapstore.model.store import BytesSource, CapturedFile, StoreLocation
from snapstore.pairs.folder import OpenFile

_LARGEST_SIDE_FILE_BYTES = 64 << 10


class MemoryCapture:
    """The pair files that are the store; each is immutable, and its bytes stay until the end."""

    def __init__(
        self, root: str, files: Sequence[OpenFile], beside: Sequence[CapturedFile]
    ) -> None:
        self._view = MemoryView(root, files)
        self._pinned = {child(root, file.name): file.pinned for file in files}
        pairs = [
            CapturedFile(name=name, mode=file.mode, source=file, identity=file.identity)
            for name, file in self._pinned.items()
        ]
        self._files = (*pairs, *beside)

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        return self._files

    @property
    def view(self) -> MemoryView:
        return self._view

    def release(self, file: CapturedFile) -> None:
        """Close a file whose bytes are stored; the store can be viewed no more."""
        pinned = self._pinned.get(file.name)
        if pinned is not None:
            pinned.close()


def side_files(location: StoreLocation) -> list[CapturedFile]:
    """Read the small files beside the store, before anything else: they must not be newer."""
    files = []
    for name in location.side_files:
        check_folder(name)
        content = _read(location.task_dir / name)
        if content is not None:
            files.append(
                CapturedFile(name=name, mode=0o644, source=BytesSource(content), inline=True)
            )
    return files


def _read(path: Path) -> bytes | None:
    try:
        file = PinnedFile(str(path))
    except FileNotFoundError:
        return None
    try:
        if file.size > _LARGEST_SIDE_FILE_BYTES:
            raise CaptureError(f"{path} is too large for a file beside a store", path=str(path))
        return file.pread(file.size, 0)
    finally:
        file.close()

"""The files of one store as they were at one moment, held while they are read."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from snapstore.backends.files.freezing import FrozenFile, freeze
from snapstore.backends.files.looking import UnsettledError, open_root
from snapstore.backends.files.options import FilesOptions
from snapstore.backends.files.view import FilesView
from snapstore.errors import CaptureError, StoreChangedError, StoreNotFoundError
from snapstore.model.folder_name import check_folder, child
from snapstore.model.pinned import PinnedFile
from snapstore.model.store import BytesSource, CapturedFile, StoreLocation

_INLINE_LIMIT_BYTES = 64 << 10
_LONGEST_PAUSE_SECONDS = 1.0

Pause = Callable[[float], None]


class FilesCapture:
    """Files that are immutable are read from where they are, the others from copies."""

    def __init__(
        self, root: str, frozen: Sequence[FrozenFile], beside: Sequence[CapturedFile]
    ) -> None:
        self._view = FilesView(root, {file.name: file.source for file in frozen})
        self._pinned = {
            child(root, file.name): file.pinned for file in frozen if file.pinned is not None
        }
        self._files = (*(_captured(root, file) for file in frozen), *beside)

    @property
    def files(self) -> tuple[CapturedFile, ...]:
        return self._files

    @property
    def view(self) -> FilesView:
        return self._view

    def release(self, file: CapturedFile) -> None:
        """Let go of a file whose bytes are stored.

        Raises StoreChangedError when an immutable file was written to all the same.
        """
        pinned = self._pinned.pop(file.name, None)
        if pinned is None:
            return
        with closing(pinned):
            status = pinned.status()
        if (status.st_size, status.st_mtime_ns) != (pinned.size, pinned.identity.mtime_ns):
            raise StoreChangedError(
                f"{file.name} was written to, although it fits a pattern of immutable files",
                hint="take the pattern out of backends.files.immutable",
                file=file.name,
            )


def capture_files(
    location: StoreLocation, room: Path, options: FilesOptions, pause: Pause, stack: ExitStack
) -> FilesCapture:
    """Hold the store's files as they were at one moment; ``stack`` frees them.

    The files beside its folder are read first: they may hold its offset, which must not be newer.
    """
    check_folder(location.root)
    beside = [file for name in location.side_files for file in _beside(location, name)]
    frozen = _settled(location, room, options, pause, stack)
    if not frozen:
        raise nothing_there(location.path)
    return FilesCapture(location.root, frozen, beside)


def nothing_there(path: Path) -> StoreNotFoundError:
    return StoreNotFoundError(
        f"no state in {path}",
        hint="nothing was written there yet, or the application has removed it",
        path=str(path),
    )


def _settled(
    location: StoreLocation, room: Path, options: FilesOptions, pause: Pause, stack: ExitStack
) -> tuple[FrozenFile, ...]:
    """Freeze the folder; try again as long as it changes meanwhile."""
    attempt = 0
    while True:
        copies = Path(tempfile.mkdtemp(dir=room))
        with ExitStack() as held:
            try:
                with open_root(location.task_dir, location.root) as root_fd:
                    frozen = freeze(root_fd, location.root, copies, options, held)
            except FileNotFoundError as error:
                raise nothing_there(location.path) from error
            except UnsettledError as error:
                attempt += 1
                if attempt >= options.max_attempts:
                    raise _never_settled(location, error, attempt) from error
                shutil.rmtree(copies)
                pause(min(options.retry_seconds * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS))
                continue
            stack.push(held.pop_all())
            return frozen


def _never_settled(
    location: StoreLocation, error: UnsettledError, attempts: int
) -> StoreChangedError:
    return StoreChangedError(
        f"{location.path} kept changing while it was read: {error}",
        hint="try again when the application is less busy, or stop it; files that are only ever "
        "added and removed can be named as backends.files.immutable",
        path=str(location.path),
        attempts=attempts,
    )


def _captured(root: str, file: FrozenFile) -> CapturedFile:
    return CapturedFile(
        name=child(root, file.name),
        mode=file.mode,
        source=file.source,
        identity=None if file.pinned is None else file.pinned.identity,
        inline=file.pinned is None and file.source.size <= _INLINE_LIMIT_BYTES,
    )


def _beside(location: StoreLocation, name: str) -> Iterator[CapturedFile]:
    """Yield a file beside the store's folder, unless it is gone; one inside is taken with it."""
    check_folder(name)
    if location.root == "." or name.startswith(f"{location.root}/"):
        return
    try:
        with closing(PinnedFile(str(location.task_dir / name), shown=name)) as file:
            if file.size > _INLINE_LIMIT_BYTES:
                raise CaptureError(f"{name} is too large for a file beside a store", file=name)
            content = file.pread(file.size, 0)
    except FileNotFoundError:
        return
    yield CapturedFile(name=name, mode=file.mode, source=BytesSource(content), inline=True)

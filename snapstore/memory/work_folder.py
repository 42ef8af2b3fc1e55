"""The folder that a memory store works in: its files, and one store at a time."""

import fcntl
import os
from pathlib import Path

from snapstore.errors import RunInProgressError, TargetNotEmptyError
from snapstore.pairs.folder import is_pair_file, writing


class WorkFolder:
    """``files`` holds the pair files, ``cache`` what can be lost. Locked until it is closed."""

    def __init__(self, path: Path | str) -> None:
        """Make what is missing. Raises RunInProgressError where another store works there."""
        self.path = Path(path)
        self.files = self.path / "files"
        self.cache = self.path / "cache"
        with writing(self.path):
            self.files.mkdir(parents=True, exist_ok=True)
            self._fd: int | None = os.open(
                self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise RunInProgressError(
                f"another store works in {self.path}", path=str(self.path)
            ) from error

    def require_empty(self, hint: str) -> None:
        """Raise TargetNotEmptyError where an earlier store has left its files."""
        if any(is_pair_file(path.name) for path in self.files.iterdir()):
            raise TargetNotEmptyError(
                f"{self.files} holds a store already", hint=hint, path=str(self.files)
            )

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

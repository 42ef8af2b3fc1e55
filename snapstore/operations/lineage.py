"""Remember on this host which snapshots a task directory was restored from.

What an application has done in the directory since is of the same changelog as long as its topic is
still the one of that snapshot: so its fence proves the directory, too. Without such a note nothing
tells whether the files and the topic belong together.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from snapstore.model.accepted import Danger, told
from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.model.snapshot import Position

Remember = Callable[[Path, Mapping[str, tuple[Position, ...]]], None]
"""Called with a task directory in its place, and the positions of its stores by their names."""


def with_accepted(positions: Sequence[Position], dangers: Sequence[Danger]) -> tuple[Position, ...]:
    """Note in positions what was accepted, beside what was before."""
    return tuple(
        msgspec.structs.replace(each, accepted=tuple(sorted({*each.accepted, *dangers})))
        for each in positions
    )


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """``device`` and ``inode`` tell the directory from another one that was made in its place."""

    task_dir: str
    device: int
    inode: int
    stores: dict[str, tuple[Position, ...]]


class Lineage:
    """Notes in a folder of this host; without them a replay has to be allowed unchecked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def remember(self, task_dir: Path, stores: Mapping[str, tuple[Position, ...]]) -> None:
        """Note the snapshots that were just restored; others of that directory stay noted.

        Raises OSError when the folder cannot be written.
        """
        known = self.recall(task_dir)
        self._write(task_dir, {**known, **stores})

    def moved(self, task_dir: Path, known: Mapping[str, tuple[Position, ...]]) -> None:
        """The directory was replaced by one that goes back to the same snapshots."""
        self._write(task_dir, known)

    def recall(self, task_dir: Path) -> Mapping[str, tuple[Position, ...]]:
        """Return what is known of a directory; nothing if another one is in its place now."""
        try:
            note = msgspec.json.decode(read_regular(self._file(task_dir)), type=_Note)
            status = task_dir.stat()
        except (FileNotFoundError, NotRegularError, msgspec.DecodeError):
            return {}
        same = (note.device, note.inode) == (status.st_dev, status.st_ino)
        return note.stores if same else {}

    def accepted(self, task_dir: Path) -> list[str]:
        """Return sentences on what was accepted when stores of a directory were restored."""
        return [
            sentence
            for store, positions in sorted(self.recall(task_dir).items())
            for sentence in told(
                f"{task_dir / store}", (danger for each in positions for danger in each.accepted)
            )
        ]

    def _write(self, task_dir: Path, stores: Mapping[str, tuple[Position, ...]]) -> None:
        status = task_dir.stat()
        note = _Note(
            task_dir=str(task_dir.resolve()),
            device=status.st_dev,
            inode=status.st_ino,
            stores=dict(stores),
        )
        file = self._file(task_dir)
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        temporary.write_bytes(msgspec.json.encode(note))
        temporary.replace(file)

    def _file(self, task_dir: Path) -> Path:
        name = hashlib.sha256(str(task_dir.resolve()).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"

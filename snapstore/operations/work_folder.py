"""The folder in which one store is brought forward, kept from one run to the next.

    STORE/note.json      which store it is, how far it had got, and the fence taken there
    STORE/task/          a task directory with this store alone

The note is written once the data is durable. Data may be ahead of it, where a run was interrupted.
"""

import shutil
from pathlib import Path

import msgspec

from snapstore.model.regular_file import NotRegularError, read_regular
from snapstore.model.snapshot import Position
from snapstore.model.store import StoreLocation
from snapstore.operations.stage_files import os_errors, sync_folder


class WorkNote(msgspec.Struct, frozen=True, kw_only=True):
    """``whole`` is False from when something is about to be written until it is durable.

    ``complete``: see ``Description``.
    """

    backend: str
    store_type: str
    generation: str
    root: str
    position: Position
    whole: bool
    complete: bool = True

    def fits(self, location: StoreLocation) -> bool:
        """Whether the folder holds a store of that kind; the application may be newer by now."""
        there = (self.backend, self.store_type, self.root)
        return there == (location.backend, location.store_type, location.root)


class WorkFolder:
    """The folder of one store. ``absent`` is a name in it that is never used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.task_dir = path / "task"
        self.absent = path / "absent"
        self._note = path / "note.json"

    def read(self) -> WorkNote | None:
        """Return the note; None where there is none, or none that can be read."""
        try:
            return msgspec.json.decode(read_regular(self._note), type=WorkNote)
        except (FileNotFoundError, NotRegularError, msgspec.DecodeError):
            return None

    def make(self) -> None:
        with os_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def write(self, note: WorkNote) -> None:
        """Replace the note, durably."""
        self.make()
        with os_errors(self.path):
            temporary = self._note.with_suffix(".tmp")
            temporary.write_bytes(msgspec.json.encode(note))
            temporary.replace(self._note)
        sync_folder(self.path)

    def begin(self, location: StoreLocation, position: Position | None, *, complete: bool) -> None:
        """Note that what is there is about to be changed."""
        if position is not None:
            self.write(note_of(location, position, whole=False, complete=complete))

    def finish(self, location: StoreLocation, position: Position, *, complete: bool) -> None:
        """Note that what is there is durable up to ``position``."""
        self.write(note_of(location, position, whole=True, complete=complete))

    def clear(self) -> None:
        """Remove everything."""
        with os_errors(self.path):
            if self.path.exists():
                shutil.rmtree(self.path)

    def place(self, location: StoreLocation) -> StoreLocation:
        """Return the store as it lies here."""
        return msgspec.structs.replace(location, task_dir=self.task_dir, side_files=())


def note_of(
    location: StoreLocation, position: Position, *, whole: bool, complete: bool
) -> WorkNote:
    return WorkNote(
        backend=location.backend,
        store_type=location.store_type,
        generation=location.generation,
        root=location.root,
        position=position,
        whole=whole,
        complete=complete,
    )

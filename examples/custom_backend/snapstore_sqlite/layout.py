"""Where the applications of ``snapstore_sqlite.store`` keep their stores.

``STATE_DIR/APPLICATION/PARTITION/STORE/state.db``, and ``STATE_DIR/APPLICATION/.lock``.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import msgspec

from snapstore.errors import (
    NotReplayableError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
    UnsafePathError,
)
from snapstore.layouts.folders import is_folder, list_dir
from snapstore.layouts.locks import held_locks, hold_lock
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import (
    Discovery,
    FamilyNote,
    Note,
    ReplaySubject,
    StoreReplay,
    StoreView,
    StoreWriter,
)
from snapstore_sqlite.replay import SQLiteReplay
from snapstore_sqlite.store import DATABASE, LOCK, OFFSETS

GENERATION = "sqlite-1"


class SQLiteLayoutOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``changelog`` is how the application names its topics; ``changelogs`` are those of stores
    that are named otherwise.
    """

    changelog: str = "{application}-{store}-changelog"
    changelogs: dict[str, str] = {}


class SQLiteLayout:
    """Implements Layout and ReplayLayout."""

    name: str = "sqlite"
    Options: ClassVar[type[SQLiteLayoutOptions]] = SQLiteLayoutOptions

    def __init__(self, options: SQLiteLayoutOptions | None = None) -> None:
        self._options = options or SQLiteLayoutOptions()

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        if not state_dir.is_dir():
            raise StoreNotFoundError(f"{state_dir} is not there", path=str(state_dir))
        state_dir = state_dir.resolve()
        found, notes = [], []
        for folder in sorted(_store_folders(state_dir)):
            task_dir, owner = folder.parent, folder.parent.parent
            if application not in (None, owner.name) or not (folder / DATABASE).exists():
                continue
            if not _is_partition(task_dir.name):
                notes.append(f"{folder} is skipped: {task_dir.name!r} is no partition")
                continue
            store = StoreId(owner.name, task_dir.name, folder.name)
            found.append(self._location(store, task_dir))
        if application is not None and not (state_dir / application).is_dir():
            raise StoreNotFoundError(f"there is no {application!r} in {state_dir}")
        found.sort(key=lambda location: location.store.order)
        return Discovery(locations=tuple(found), notes=tuple(notes))

    def in_use(self, location: StoreLocation) -> bool:
        return bool(self.which_in_use([location]))

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Ask for the application's lock, and for the one that SQLite has on an open database."""
        locks = {
            one.path: (one, {one.task_dir.parent / LOCK, one.path / DATABASE}) for one in locations
        }
        held = held_locks(path for _, paths in locks.values() for path in paths)
        return tuple(one for one, paths in locks.values() if paths & held)

    def noted_offsets(self, location: StoreLocation) -> bytes | None:  # noqa: ARG002
        """The offset is in the database."""
        return None

    def positions(
        self,
        location: StoreLocation,
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,
        *,
        running: bool,  # noqa: ARG002
    ) -> tuple[ChangelogPosition, ...]:
        """Return what the database notes; it is exact, running or not."""
        positions = _read_offsets(view, location.root)
        if not positions:
            raise UnknownOffsetError(
                f"{location.store} notes no offset: it has committed nothing yet",
                store=str(location.store),
            )
        return positions

    def remarks(
        self,
        location: StoreLocation,  # noqa: ARG002
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,  # noqa: ARG002
        positions: Sequence[ChangelogPosition],  # noqa: ARG002
    ) -> tuple[str, ...]:
        return ()

    def task_dir(self, target: Path, description: Description) -> Path:
        store = description.store
        if _is_name(store.application) and _is_partition(store.task):
            return target / store.application / store.task
        raise UnsafePathError(f"refused: {store} cannot lie below {target}", store=str(store))

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def notes(
        self,
        task_dir: Path,  # noqa: ARG002
        restored: Sequence[Description],
        views: Sequence[StoreView],
    ) -> tuple[Note, ...]:
        """Plan what the databases do not say by themselves: nothing after a plain restore."""
        notes = []
        for description, view in zip(restored, views, strict=True):
            there = view.entries(description.root, OFFSETS)
            wanted = dict(offset_entry(one.position) for one in description.positions)
            if changed := dict(wanted.items() - there.items()):
                notes.append(FamilyNote(database=description.root, family=OFFSETS, entries=changed))
        return tuple(notes)

    @contextmanager
    def hold(self, target: Path, description: Description) -> Iterator[None]:
        """Hold the lock that the application takes at its start."""
        folder = self.task_dir(target, description).parent
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / LOCK, target):
            yield

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        topic = self._options.changelogs.get(store.store) or self._options.changelog.format(
            application=store.application, store=store.store
        )
        return (ChangelogPartition(topic, int(store.task)),)

    def place(self, store: StoreId, task_dir: Path, generation: str | None) -> StoreLocation:  # noqa: ARG002
        """Raise NotReplayableError: nothing but its files tells of a store."""
        raise NotReplayableError(
            f"{store} has no files here",
            hint="take its first snapshot where its application runs",
            store=str(store),
        )

    def require_replayable(self, store: StoreId, store_type: str) -> None:
        """Every store of this layout can be replayed."""

    def offsets_by_database(
        self, location: StoreLocation, view: StoreView, changelog: ChangelogPartition
    ) -> Mapping[str, int | None]:
        noted = {one.changelog: one.applied_offset for one in _read_offsets(view, location.root)}
        return {location.root: noted.get(changelog)}

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        return SQLiteReplay(writer, subject)

    def _location(self, store: StoreId, task_dir: Path) -> StoreLocation:
        return StoreLocation(
            store=store,
            layout=self.name,
            backend="sqlite",
            store_type="key-value",
            generation=GENERATION,
            task_dir=task_dir,
            root=store.store,
        )


def offset_entry(position: ChangelogPosition) -> tuple[bytes, bytes]:
    """Return the pair that notes an applied offset."""
    return str(position.changelog).encode(), b"%d" % position.applied_offset


def _read_offsets(view: StoreView, database: str) -> tuple[ChangelogPosition, ...]:
    if OFFSETS not in view.families(database):
        return ()
    try:
        return tuple(
            ChangelogPosition(ChangelogPartition.parse(changelog.decode()), int(offset))
            for changelog, offset in sorted(view.entries(database, OFFSETS).items())
        )
    except ValueError as error:
        raise SourceDamagedError(f"{database} notes what is no offset: {error}") from error


def _store_folders(state_dir: Path) -> Iterator[Path]:
    """Yield what lies three folders deep; any of them may come and go meanwhile."""
    for owner in _folders(state_dir):
        for task_dir in _folders(owner):
            yield from _folders(task_dir)


def _folders(path: Path) -> list[Path]:
    return [path / entry.name for entry in list_dir(path) if is_folder(entry)]


def _is_partition(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _is_name(name: str) -> bool:
    return name not in {"", ".", ".."} and "/" not in name and name.isprintable()

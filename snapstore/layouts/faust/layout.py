"""The data directory of Faust, as a layout."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from snapstore.errors import ExactlyOnceHotError, NotReplayableError, UnknownOffsetError
from snapstore.layouts.faust.discover import (
    TABLE_OF_PYTHON_ROCKSDB,
    check_driver,
    databases,
    discover,
)
from snapstore.layouts.faust.names import LOCK, changelog_of, table_dir
from snapstore.layouts.faust.options import FaustOptions
from snapstore.layouts.faust.replay import FaustReplay
from snapstore.layouts.locks import held_locks, hold_lock, watching_locks
from snapstore.model.faust_records import FAMILY, OFFSET_KEY, decode_offset, encode_offset
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import (
    Discovery,
    FamilyNote,
    Note,
    ReplaySubject,
    SeekableView,
    StoreReplay,
    StoreView,
    StoreWriter,
)


class FaustLayout:
    """``DATADIR/v1/tables/TABLE-PARTITION.db``, each a RocksDB with a write-ahead log.

    The offset lies among the entries and is written when the record was acknowledged, after the
    data: a copy of a running table may hold more than its offset says, and never less. Set tables
    are not supported: Faust may note an offset of theirs whose changes it has in memory only, so
    leave them out (``stores.NAME.skip``).
    """

    name: str = "faust"
    Options: ClassVar[type[FaustOptions]] = FaustOptions

    def __init__(self, options: FaustOptions | None = None) -> None:
        self._options = options or FaustOptions()

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        """Find the tables; the state directory is Faust's data directory."""
        return discover(state_dir, application, self.name)

    def in_use(self, location: StoreLocation) -> bool:
        return bool(self.which_in_use([location]))

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those of which somebody holds RocksDB's lock, the only one there is."""
        held = held_locks(
            (one.path / LOCK for one in locations),
            assume_free=self._options.assume_stopped_without_locks,
        )
        return tuple(one for one in locations if one.path / LOCK in held)

    def watching_locks(self) -> AbstractContextManager[None]:
        return watching_locks()

    def noted_offsets(self, location: StoreLocation) -> bytes | None:  # noqa: ARG002
        """The offset is in the database."""
        return None

    def positions(
        self,
        location: StoreLocation,
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,
        *,
        running: bool,
    ) -> tuple[ChangelogPosition, ...]:
        """Return what the table notes. Raises UnknownOffsetError, ExactlyOnceHotError."""
        offset = _read_offset(view)
        if offset is None:
            raise UnknownOffsetError(
                f"{location.store} notes no changelog offset",
                hint="nothing of it was acknowledged by Kafka yet",
                store=str(location.store),
            )
        if running and self._options.exactly_once:
            raise ExactlyOnceHotError(
                f"{location.store} is written before its transaction is committed",
                hint="stop the application",
                store=str(location.store),
            )
        return (ChangelogPosition(changelog_of(location.store, self._options), offset),)

    def remarks(
        self,
        location: StoreLocation,  # noqa: ARG002
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,  # noqa: ARG002
        positions: Sequence[ChangelogPosition],  # noqa: ARG002
    ) -> tuple[str, ...]:
        return ()

    def task_dir(self, target: Path, description: Description) -> Path:
        """Each partition of each table is restored by itself."""
        return table_dir(target, description.store)

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:
        return check_driver(target, description)

    def notes(
        self,
        task_dir: Path,  # noqa: ARG002
        restored: Sequence[Description],
        views: Sequence[StoreView],
    ) -> tuple[Note, ...]:
        """Plan nothing after a plain restore: the offset has come with the files."""
        notes = []
        for description, view in zip(restored, views, strict=True):
            (database,) = view.databases
            for each in description.positions:
                applied = each.position.applied_offset
                if _read_offset(view) == applied:
                    continue
                self.require_replayable(description.store, description.store_type)
                entries = {OFFSET_KEY: encode_offset(applied)}
                notes.append(FamilyNote(database=database, family=FAMILY, entries=entries))
        return tuple(notes)

    @contextmanager
    def hold(self, target: Path, description: Description) -> Iterator[None]:
        """Hold RocksDB's lock of every table that is there; see the layout `quix`."""
        data_dir = table_dir(target, description.store).parents[2]
        with ExitStack() as held:
            for folder in sorted(databases(data_dir)):
                held.enter_context(
                    hold_lock(
                        folder / LOCK,
                        target,
                        assume_free=self._options.assume_stopped_without_locks,
                    )
                )
            yield

    def presumed_changelogs(self, store: StoreId) -> tuple[ChangelogPartition, ...]:
        return (changelog_of(store, self._options),)

    def place(self, store: StoreId, task_dir: Path, generation: str | None) -> StoreLocation:  # noqa: ARG002
        """Raise NotReplayableError: nothing but its files tells of a store."""
        raise NotReplayableError(
            f"{store} has no files here",
            hint="take its first snapshot where its application runs",
            store=str(store),
        )

    def require_replayable(self, store: StoreId, store_type: str) -> None:
        """Raise NotReplayableError for files that python-rocksdb must be able to open again.

        RocksDB 9 would write them in a form that its RocksDB 6 does not know.
        """
        if store_type == TABLE_OF_PYTHON_ROCKSDB:
            raise NotReplayableError(
                f"{store} was written by python-rocksdb, which could not open it any more",
                hint="let the application replay",
                store=str(store),
            )

    def offsets_by_database(
        self,
        location: StoreLocation,  # noqa: ARG002
        view: StoreView,
        changelog: ChangelogPartition,  # noqa: ARG002
    ) -> Mapping[str, int | None]:
        """Return nothing where transactions are configured: then ``positions`` is to decide."""
        if self._options.exactly_once:
            return {}
        (database,) = view.databases
        return {database: _read_offset(view)}

    def open_replay(self, writer: StoreWriter, subject: ReplaySubject) -> StoreReplay:
        self.require_replayable(subject.location.store, subject.location.store_type)
        return FaustReplay(writer, subject)


def _read_offset(view: StoreView) -> int | None:
    (database,) = view.databases
    if isinstance(view, SeekableView):
        pairs = view.scan_from(database, FAMILY, OFFSET_KEY)
    else:
        pairs = view.scan(database, FAMILY)
    for key, value in pairs:
        if key == OFFSET_KEY:
            return decode_offset(value)
        if key > OFFSET_KEY:
            return None
    return None

"""One folder that is one store, with its offset in a side file.

For engines without a layout of their own. The side file `.snapstore-position.json` lies in the
folder; whoever writes the store writes it too, after the records are on disk and by a rename::

    {"format": 1, "positions": [{"topic": "orders", "partition": 3, "applied_offset": 1234}]}

``applied_offset`` is that of the last record in the files. An empty list is a store without a
changelog; no file means that the offset is not known.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from snapstore.errors import (
    ConfigError,
    RefusedError,
    SourceDamagedError,
    StoreNotFoundError,
    UnknownOffsetError,
)
from snapstore.layouts.folders import is_there, list_dir
from snapstore.layouts.locks import held_locks, hold_lock, watching_locks
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.regular_file import read_source
from snapstore.model.snapshot import Description
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.ports import Discovery, FileNote, Note, StoreView

SIDE_FILE = ".snapstore-position.json"
GENERATION = "plain-1"

_LOCK = "LOCK"
_STREAMS_METADATA = "kafka-streams-process-metadata"
_STREAMS_TASK = re.compile(r"[0-9]+_[0-9]+")


class PlainOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the folder does not tell. ``store`` is the folder's name where it is not given.

    ``applied_offset`` with ``changelog`` (``topic:partition``) takes the place of a side file; use
    it only for a folder that nobody writes to.

    ``assume_stopped_without_locks``: where the file system has no locks, nothing tells whether the
    application runs; it is taken for stopped.
    """

    application: str | None = None
    task: str = "0"
    store: str | None = None
    backend: str = "rocksdb"
    store_type: str = "key-value"
    changelog: str | None = None
    applied_offset: Annotated[int, msgspec.Meta(ge=0)] | None = None
    assume_stopped_without_locks: bool = False


class NotedPosition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0)]
    applied_offset: Annotated[int, msgspec.Meta(ge=0)]


class SideFile(msgspec.Struct, frozen=True):
    """The content of the side file."""

    format: int
    positions: tuple[NotedPosition, ...]


class PlainLayout:
    """One folder, one store."""

    name: str = "plain"
    Options: ClassVar[type[PlainOptions]] = PlainOptions

    def __init__(self, options: PlainOptions | None = None) -> None:
        """Raises ConfigError when an offset is given without its changelog, or a malformed one."""
        self._options = options or PlainOptions()
        self._given = _given_position(self._options)

    def discover(self, state_dir: Path, application: str | None = None) -> Discovery:
        """Return the store in ``state_dir``.

        Raises StoreNotFoundError, CaptureError when it cannot be read, or ConfigError.
        """
        if not is_there(state_dir, folder=True):
            raise StoreNotFoundError(f"{state_dir} is not there", path=str(state_dir))
        folder = state_dir.resolve()
        if not any(entry.name != SIDE_FILE for entry in list_dir(folder)):
            return Discovery(locations=(), notes=(f"{state_dir}: an empty folder",))
        application = application or self._options.application
        if application is None:
            raise ConfigError(
                "a plain folder does not tell the application it belongs to",
                hint="give the application",
            )
        store = StoreId(application, self._options.task, self._options.store or folder.name)
        return Discovery(locations=(self._location(store, folder),))

    def in_use(self, location: StoreLocation) -> bool:
        return bool(self.which_in_use([location]))

    def which_in_use(self, locations: Sequence[StoreLocation]) -> tuple[StoreLocation, ...]:
        """Return those of which somebody holds RocksDB's lock; other stores never show."""
        held = held_locks(
            (one.path / _LOCK for one in locations),
            assume_free=self._options.assume_stopped_without_locks,
        )
        return tuple(one for one in locations if one.path / _LOCK in held)

    def watching_locks(self) -> AbstractContextManager[None]:
        return watching_locks()

    def noted_offsets(self, location: StoreLocation) -> bytes | None:
        try:
            return read_source(location.task_dir / SIDE_FILE)
        except FileNotFoundError:
            return None

    def positions(
        self,
        location: StoreLocation,
        noted: bytes | None,
        view: StoreView,  # noqa: ARG002 - the files themselves tell nothing here
        *,
        running: bool,
    ) -> tuple[ChangelogPosition, ...]:
        """Return what the side file says, or the option; raises UnknownOffsetError without both."""
        if self._given is not None:
            if running:
                raise UnknownOffsetError(
                    f"{location.store} is being written to, so the offset that was configured "
                    "cannot be that of its files",
                    hint="stop the application",
                    store=str(location.store),
                )
            return (self._given,)
        if noted is None:
            raise UnknownOffsetError(
                f"there is no {SIDE_FILE} in {location.path}",
                hint="give the changelog and the applied offset of the store",
                store=str(location.store),
            )
        return _decode(noted, location.task_dir / SIDE_FILE)

    def remarks(
        self,
        location: StoreLocation,  # noqa: ARG002
        noted: bytes | None,  # noqa: ARG002
        view: StoreView,  # noqa: ARG002
        positions: Sequence[ChangelogPosition],  # noqa: ARG002
    ) -> tuple[str, ...]:
        return ()

    def task_dir(self, target: Path, description: Description) -> Path:  # noqa: ARG002
        """The target is the store's folder itself."""
        return target

    def check_target(self, target: Path, description: Description) -> tuple[str, ...]:
        """Raise RefusedError for a store in memory where Kafka Streams keeps its state."""
        if description.backend == "memory" and _is_kafka_streams(target):
            raise RefusedError(
                f"{target} belongs to Kafka Streams, which never loads a store in memory from a "
                "directory",
                hint="such a snapshot is for Python programs (MemoryStore.restore), for drills and "
                "for inspection; name a folder of its own",
                target=str(target),
            )
        return ()

    def notes(
        self,
        task_dir: Path,
        restored: Sequence[Description],
        views: Sequence[StoreView],  # noqa: ARG002 - no database keeps the offset here
    ) -> tuple[Note, ...]:
        if not restored:
            return ()
        content = _encode(restored[0])
        path = task_dir / SIDE_FILE
        if path.exists() and read_source(path) == content:
            return ()
        return (FileNote(name=SIDE_FILE, content=content),)

    @contextmanager
    def hold(self, target: Path, description: Description) -> Iterator[None]:
        """Hold RocksDB's lock of the store that is there; a folder without one is not held."""
        lock = target / description.root / _LOCK
        if not lock.exists():
            yield
            return
        with hold_lock(lock, target, assume_free=self._options.assume_stopped_without_locks):
            yield

    def _location(self, store: StoreId, folder: Path) -> StoreLocation:
        return StoreLocation(
            store=store,
            layout=self.name,
            backend=self._options.backend,
            store_type=self._options.store_type,
            generation=GENERATION,
            task_dir=folder,
            root=".",
            side_files=(SIDE_FILE,) if (folder / SIDE_FILE).exists() else (),
        )


def _is_kafka_streams(target: Path) -> bool:
    """Whether a folder is, holds or lies in the state directory of an application."""
    inside = [*target.iterdir()] if target.is_dir() else []
    if any((folder / _STREAMS_METADATA).exists() for folder in (target, *target.parents, *inside)):
        return True
    return any(_STREAMS_TASK.fullmatch(folder.name) for folder in (target, *inside))


def _given_position(options: PlainOptions) -> ChangelogPosition | None:
    if options.applied_offset is None:
        return None
    if options.changelog is None:
        raise ConfigError("an applied offset needs the changelog it is of", key="changelog")
    try:
        changelog = ChangelogPartition.parse(options.changelog)
    except ValueError as exc:
        raise ConfigError(f"changelog: {exc}", key="changelog") from exc
    return ChangelogPosition(changelog, options.applied_offset)


def _decode(noted: bytes, path: Path) -> tuple[ChangelogPosition, ...]:
    try:
        content = msgspec.json.decode(noted, type=SideFile)
    except msgspec.MsgspecError as exc:
        raise SourceDamagedError(f"{path}: {exc}", path=str(path)) from exc
    if content.format != 1:
        raise SourceDamagedError(
            f"{path} has format {content.format}, and only format 1 is known", path=str(path)
        )
    return tuple(
        ChangelogPosition(ChangelogPartition(one.topic, one.partition), one.applied_offset)
        for one in content.positions
    )


def _encode(description: Description) -> bytes:
    noted = tuple(
        NotedPosition(
            one.position.changelog.topic,
            one.position.changelog.partition,
            one.position.applied_offset,
        )
        for one in description.positions
    )
    return msgspec.json.format(msgspec.json.encode(SideFile(format=1, positions=noted)))

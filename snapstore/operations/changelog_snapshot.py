"""Make a store from its changelog in a work folder, and take the snapshot there.

It begins with what is nearest to the end of the log and can be proved: what the last run has left,
the application's disk if that is asked for, the newest usable snapshot, or nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from snapstore.errors import (
    CaptureError,
    IntegrityError,
    NotFoundError,
    NotReplayableError,
    RefusedError,
    SnapstoreError,
    StoreNotFoundError,
)
from snapstore.model.changelog import PartitionState
from snapstore.model.folder import Folder
from snapstore.model.guarantee import of_snapshot
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.listing import ListedSnapshot
from snapstore.model.report import Noted
from snapstore.model.resume import Overrides, plan_rebuild
from snapstore.model.snapshot import Position
from snapstore.model.store import ChangelogPosition, StoreLocation
from snapstore.model.units import count
from snapstore.operations.fence import take_fence
from snapstore.operations.guarantee import configured_guarantee
from snapstore.operations.replay import (
    ReplayedPartition,
    ReplayPorts,
    describe_location,
    note_reached,
    plan_replays,
    replay_store,
)
from snapstore.operations.replay_layout import refuse_repetition, require_replay_layout
from snapstore.operations.replay_plan import PlannedReplay, ReplayGoal
from snapstore.operations.restore_deletions import delete_staged
from snapstore.operations.restore_lock import work_lock
from snapstore.operations.restore_plan import Wanted, plan_task
from snapstore.operations.restore_replay import from_own_offsets, own_offset
from snapstore.operations.restore_target import look_at_task
from snapstore.operations.roll_forward import take_hot_base
from snapstore.operations.snapshot_fence import presumed_changelogs
from snapstore.operations.stage import Parts, stage
from snapstore.operations.stage_files import FileWriter, Permissions, os_errors
from snapstore.operations.stopping import Stop
from snapstore.operations.swap import clear_work
from snapstore.operations.tail import settled
from snapstore.operations.work_area import STAGING
from snapstore.operations.work_folder import WorkFolder
from snapstore.ports import StoreView
from snapstore.repository import Repository, keys

_PRIVATE = Permissions(file_mode=0o600, dir_mode=0o700)


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A store in its work folder, brought to the end of its changelog.

    ``origin`` says what it was begun with, ``skipped`` why not with something nearer. ``complete``:
    see ``Description``; the changelog began at ``log_start``.
    """

    location: StoreLocation
    position: ChangelogPosition
    before: Mapping[ChangelogPartition, PartitionState]
    replayed: tuple[ReplayedPartition, ...]
    origin: str
    skipped: tuple[str, ...]
    complete: bool
    log_start: int

    @property
    def records(self) -> int:
        return sum(each.records for each in self.replayed)


class _Base(msgspec.Struct, frozen=True, kw_only=True):
    origin: str
    location: StoreLocation
    planned: tuple[PlannedReplay, ...]
    position: Position | None = None
    template: StoreLocation | None = None
    complete: bool = True


class ChangelogMaker:
    """Makes stores from their changelogs; ``folder`` is where the work folders are."""

    def __init__(self, folder: Path, repository: Repository, ports: ReplayPorts) -> None:
        # A danger that somebody accepts for one restore must not get into a snapshot.
        self._given = msgspec.structs.replace(ports, overrides=Overrides())
        self._folder = folder
        self._repository = repository

    def work_folder(self, store: StoreId) -> WorkFolder:
        parts = (store.application, store.task, store.store)
        return WorkFolder(self._folder.joinpath(*map(keys.segment, parts)))

    def make(self, location: StoreLocation, *, hot: bool, stop: Stop) -> Made:
        """Bring the store's work folder to the end of the log.

        ``location`` says what kind of store it is; with ``hot`` its files serve as a beginning.
        Raises NotReplayableError, ChangelogGoneError, KafkaError, StorageError, or what refused
        the last beginning that was tried. Heeds the order to stop between two batches.
        """
        ports = msgspec.structs.replace(self._given, reached=lambda _: stop.check())
        return _Making(self._repository, ports, location, self.work_folder(location.store)).make(
            hot=hot
        )


class _Making:
    """Makes one store."""

    def __init__(
        self,
        repository: Repository,
        ports: ReplayPorts,
        location: StoreLocation,
        folder: WorkFolder,
    ) -> None:
        self._repository = repository
        self._ports = ports
        self._location = location
        self._folder = folder

    def make(self, *, hot: bool) -> Made:
        location = self._location
        rules = require_replay_layout(self._ports.layout)
        rules.require_replayable(location.store, location.store_type)
        changelog = self._changelog()
        before = self._ports.changelog.inspect(changelog, now=self._ports.clock())
        # So that the end that is reached is no lower than what was seen before: it dates itself.
        stable = settled(self._ports.changelog, before, self._ports.clock)
        skipped: list[str] = []
        last: SnapstoreError | None = None
        for begin in self._beginnings(changelog, before, stable, hot=hot):
            try:
                base = begin()
                if base is None:
                    continue
                return self._finish(base, changelog, before, tuple(skipped))
            except NotReplayableError:
                self._folder.clear()
                raise
            except (RefusedError, IntegrityError, CaptureError, NotFoundError) as error:
                self._folder.clear()
                if error.facts.get("empty"):
                    raise
                skipped.append(error.message)
                last = error
        raise last or NotReplayableError(f"nothing to begin {location.store} with")

    def _beginnings(
        self,
        changelog: ChangelogPartition,
        before: PartitionState,
        stable: PartitionState,
        *,
        hot: bool,
    ) -> Iterator[Callable[[], _Base | None]]:
        """Yield what may serve; what lacks rows comes after all that is complete."""
        listed = self._repository.catalog.list_store(self._location.store).snapshots
        for complete in (True, False):
            yield partial(self._from_work, complete=complete)
            if hot and complete:
                yield lambda: self._from_disk(changelog, before)
            for each in listed:
                yield partial(self._from_snapshot, each, changelog, before, complete=complete)
            if complete and stable.log_start == 0:
                break
        yield lambda: self._from_nothing(stable)

    def _from_work(self, *, complete: bool) -> _Base | None:
        note = self._folder.read()
        if note is None or not note.fits(self._location):
            self._folder.clear()
            return None
        if note.complete != complete:
            return None
        place = self._folder.place(
            msgspec.structs.replace(self._location, generation=note.generation)
        )
        (planned,) = plan_replays([note.position], self._ports, ReplayGoal())
        changelog = planned.plan.changelog
        if not note.whole and own_offset(place, changelog, self._ports) is None:
            raise RefusedError("an interrupted run has left files that do not say their offset")
        ahead = from_own_offsets(place, planned, self._ports)
        return _Base(
            origin="the work folder",
            location=place,
            planned=(ahead,),
            position=note.position,
            complete=complete,
        )

    def _from_disk(self, changelog: ChangelogPartition, before: PartitionState) -> _Base:
        catalog = self._repository.catalog
        base = take_hot_base(self._location, changelog, before, self._folder, self._ports, catalog)
        origin = "the application's disk"
        if base.left_behind:
            origin += f", without {count(len(base.left_behind), 'database')} of no known offset"
        return _Base(
            origin=origin,
            location=self._folder.place(self._location),
            planned=base.planned,
            complete=not base.left_behind or before.log_start == 0,
        )

    def _from_snapshot(
        self,
        listed: ListedSnapshot,
        changelog: ChangelogPartition,
        before: PartitionState,
        *,
        complete: bool,
    ) -> _Base | None:
        snapshot = self._repository.catalog.load(listed)
        description = snapshot.description
        if description.complete != complete:
            return None
        if [each.position.changelog for each in description.positions] != [changelog]:
            raise RefusedError(f"snapshot {snapshot.id[:12]} is of another changelog")
        kind = (self._location.backend, self._location.store_type)
        if (description.backend, description.store_type) != kind:
            raise RefusedError(f"snapshot {snapshot.id[:12]} is of another kind of store")
        planned = plan_replays(description.positions, self._ports, ReplayGoal())
        manifest = self._repository.manifests.load(snapshot.id)
        wanted = Wanted(snapshot=snapshot, manifest=manifest)
        task_dir = self._folder.task_dir
        self._folder.clear()
        self._folder.make()
        with (
            os_errors(task_dir),
            Folder.open(self._folder.path.resolve()) as folder,
            work_lock(folder, self._files()) as area,
        ):
            there = look_at_task(task_dir, manifest.files, (), area)
            plan = plan_task(there, [wanted], replace=True)
            stage(plan, area, self._parts(), self._files(), self._ports.reached)
            layout, backends = self._ports.layout, self._ports.backends
            delete_staged(plan, area, layout, backends, self._ports.listener)
            with area.own.below(STAGING) as staging:
                staging.move(task_dir.name, folder, task_dir.name)
            clear_work(area)
        location = StoreLocation(
            store=description.store,
            layout=description.layout,
            backend=description.backend,
            store_type=description.store_type,
            generation=description.generation,
            task_dir=task_dir,
            root=description.root,
        )
        if description.source == "running":
            backend = self._ports.backends[location.backend]
            with backend.open_view(task_dir, location.root) as view:
                refuse_repetition(self._ports.layout, location, view, before)
        found = of_snapshot(description, configured_guarantee(self._ports.layout))
        ahead = tuple(from_own_offsets(location, each, self._ports, found) for each in planned)
        return _Base(
            origin=f"snapshot {snapshot.id[:12]}",
            location=location,
            planned=ahead,
            position=description.positions[0],
            complete=complete,
        )

    def _from_nothing(self, stable: PartitionState) -> _Base:
        self._folder.clear()
        self._folder.task_dir.mkdir(parents=True, mode=0o700)
        plan = plan_rebuild(stable)
        planned = PlannedReplay(position=None, plan=plan, stop=plan.stop)
        return _Base(
            origin="the beginning of the log",
            location=self._folder.place(self._location),
            planned=(planned,),
            template=self._location if self._location.path.is_dir() else None,
            complete=stable.log_start == 0,
        )

    def _finish(
        self,
        base: _Base,
        changelog: ChangelogPartition,
        before: PartitionState,
        skipped: tuple[str, ...],
    ) -> Made:
        location = base.location
        self._folder.begin(location, base.position, complete=base.complete)
        with ExitStack() as held:
            template: StoreView | None = None
            if base.template is not None:
                backend = self._ports.backends[base.template.backend]
                template = held.enter_context(backend.capture(base.template)).view
            replayed = replay_store(location, base.planned, self._ports, template=template)
        stop = replayed[-1].stop
        if stop == 0:
            raise StoreNotFoundError(f"{changelog} holds no record yet", empty=True)
        position = ChangelogPosition(changelog, stop - 1)
        self._note_beside(location, position)
        fence = take_fence(self._ports.changelog, position, now=self._ports.clock(), before=before)
        self._folder.finish(
            location, Position(position=position, fence=fence), complete=base.complete
        )
        return Made(
            location=location,
            position=position,
            before={changelog: before},
            replayed=replayed,
            origin=base.origin,
            skipped=skipped,
            complete=base.complete,
            log_start=replayed[0].start if base.position is None else before.log_start,
        )

    def _note_beside(self, location: StoreLocation, position: ChangelogPosition) -> None:
        description = describe_location(
            location, [Position(position=position)], self._ports.clock()
        )
        note_reached(location, description, self._ports, self._files())

    def _changelog(self) -> ChangelogPartition:
        """Return the changelog that its snapshots name, else the one that the store would have."""
        newest = self._repository.catalog.newest_of(self._location.store)
        known: tuple[ChangelogPartition, ...] = ()
        if newest is not None:
            positions = self._repository.catalog.load(newest).description.positions
            known = tuple(each.position.changelog for each in positions)
        known = known or presumed_changelogs(self._ports.layout, self._location.store)
        if len(known) != 1:
            raise NotReplayableError(
                f"{self._location.store} has {len(known)} changelog partitions, and not one",
                hint="take the snapshot of its files, once closed if they do not say their "
                f"offset, or leave it out: stores.{self._location.store.store}.skip",
                store=str(self._location.store),
            )
        return known[0]

    def _parts(self) -> Parts:
        return Parts(
            storage=self._repository.storage,
            layout=self._ports.layout,
            backends=self._ports.backends,
            listener=self._ports.listener,
        )

    def _files(self) -> FileWriter:
        return FileWriter(_PRIVATE, lambda text: self._ports.listener(Noted(message=text)))

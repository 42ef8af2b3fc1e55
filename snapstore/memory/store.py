"""MemoryStore: a map of bytes in memory, with snapshots in a repository."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from snapstore.client import Snapstore, utc_now
from snapstore.errors import RunInProgressError, SnapstoreError
from snapstore.memory.client import client_of
from snapstore.memory.pair_map import Frozen, PairMap
from snapstore.memory.replaying import apply_record, replay
from snapstore.memory.restoring import restore_files
from snapstore.memory.saving import Reached, save
from snapstore.memory.work_folder import WorkFolder
from snapstore.model.changelog import ChangelogRecord
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.resume import CLOCK_MARGIN, Overrides
from snapstore.model.snapshot import Fence, Snapshot
from snapstore.pairs.folder import merged, opened, remove_leftovers
from snapstore.ports import Changelog, Clock


class MemoryStore:
    """A sorted map of bytes to bytes that knows how far it has got in its changelog.

    Safe for several threads. A snapshot holds the map as it was at one moment, with the offsets of
    that moment; writers go on while it is taken. Only what changed since the last one is written:
    the files lie in ``work_dir``, which belongs to this store alone and may be lost (the next
    snapshot is then a whole one). A context manager.
    """

    def __init__(
        self,
        store: StoreId,
        work_dir: Path | str,
        *,
        changelog: ChangelogPartition | None = None,
        reached: Reached = lambda _: None,
    ) -> None:
        """Go on with what was last saved in ``work_dir``, or begin with an empty map.

        ``changelog`` is the partition meant where none is named. ``reached`` is called at named
        points of every save. Raises RunInProgressError where another store is at work there, and
        IntegrityError for damaged files.
        """
        self.store = store
        self._changelog = changelog
        self._reached = reached
        self._fences: Mapping[ChangelogPartition, Fence] = {}
        self._turn = threading.Lock()
        self._work = WorkFolder(work_dir)
        try:
            with opened(self._work.files) as files:
                self._chain = tuple(file.summary for file in files)
                noted = self._chain[-1].header.positions if files else ()
                self._pairs = PairMap(
                    merged(files),
                    {each.changelog: each.applied_offset for each in noted},
                    saved=bool(files),
                )
        except BaseException:
            self._work.close()
            raise

    @classmethod
    def restore(
        cls,
        repository: Snapstore,
        store: StoreId,
        work_dir: Path | str,
        *,
        ref: str | None = None,
        changelog: ChangelogPartition | None = None,
        replace: bool = False,
        allow_unchecked_changelog: bool = False,
        allow_missed_tombstones: bool = False,
    ) -> Self:
        """Bring the newest usable snapshot of ``store`` back, or the one that ``ref`` means.

        A snapshot of a RocksDB folder (layout ``plain``) will do as well. ``replace``: what was
        saved in ``work_dir`` is given up for it. Raises SnapshotNotFoundError, TargetNotEmptyError,
        NotReplayableError for a store whose pairs are not plain, and what ``Snapstore.restore``
        raises.
        """
        with closing(WorkFolder(work_dir)) as work:
            fences = restore_files(
                client_of(repository, store, work),
                store,
                work,
                ref=ref,
                replace=replace,
                overrides=Overrides(
                    allow_unchecked_changelog=allow_unchecked_changelog,
                    allow_missed_tombstones=allow_missed_tombstones,
                ),
            )
        restored = cls(store, work_dir, changelog=changelog)
        restored._fences = fences
        return restored

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for a snapshot that is being taken, and let go of the work folder.

        What was not saved or snapshotted is lost, as memory is.
        """
        with self._turn:
            self._work.close()

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, key: bytes) -> bool:
        return self._pairs.get(key) is not None

    @property
    def positions(self) -> dict[ChangelogPartition, int]:
        """The applied offset of each changelog partition."""
        return self._pairs.positions()

    def get(self, key: bytes) -> bytes | None:
        return self._pairs.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._pairs.write(key, value)

    def delete(self, key: bytes) -> None:
        """Remove a key; one that is not there is no error."""
        self._pairs.write(key, None)

    def range(
        self, start: bytes | None = None, stop: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs in key order, from ``start`` to before ``stop``.

        What is written meanwhile may or may not be seen.
        """
        return self._pairs.range(start, stop)

    def apply(self, record: ChangelogRecord, changelog: ChangelogPartition | None = None) -> bool:
        """Apply a record and move the applied offset with it, in one step.

        False, and no change, for a record that is applied already. Raises NotReplayableError for
        one without a key.
        """
        return apply_record(self._pairs, self._partition(changelog), record)

    def note(self, offset: int, changelog: ChangelogPartition | None = None) -> None:
        """Say that every record up to ``offset`` is in the map, for programs that use ``put``.

        Raises ValueError for an offset below the one that is noted.
        """
        self._pairs.note(self._partition(changelog), offset)

    def replay(
        self,
        changelog: Changelog,
        partition: ChangelogPartition | None = None,
        *,
        clock: Clock = utc_now,
        clock_margin: timedelta = CLOCK_MARGIN,
        allow_unchecked_changelog: bool = False,
        allow_missed_tombstones: bool = False,
    ) -> int:
        """Apply the records after the applied offset up to the log's end; return how many.

        An empty store is filled from the log's beginning. Nobody else may write meanwhile. All of
        the tail is applied or, on an error, nothing. Raises UnknownOffsetError where the map holds
        pairs and no offset, the refusals of the fence that was taken with the snapshot, KafkaError.
        """
        chosen = self._partition(partition)
        with self._turn:
            return replay(
                self._pairs,
                changelog,
                chosen,
                self._fences.get(chosen),
                clock=clock,
                overrides=Overrides(
                    allow_unchecked_changelog=allow_unchecked_changelog,
                    allow_missed_tombstones=allow_missed_tombstones,
                ),
                clock_margin=clock_margin,
            )

    def save(self) -> None:
        """Bring the files in the work folder up to now. Raises CaptureError or NoSpaceError."""
        with self._turn:
            self._save(self._pairs.freeze())

    def snapshot(
        self,
        repository: Snapstore,
        *,
        tags: Mapping[str, str] | None = None,
        skip_unchanged: bool = False,
    ) -> Snapshot:
        """Put the map as it is now into a repository; return the snapshot.

        Writers in other threads go on. With ``skip_unchanged`` the snapshot before is returned when
        it holds the same. Raises RunInProgressError while another one is taken, CaptureError,
        NoSpaceError, and what a snapshot of any store raises.
        """
        return self._taking(repository, tags, skip_unchanged=skip_unchanged)()

    def snapshot_in_background(
        self,
        repository: Snapstore,
        *,
        tags: Mapping[str, str] | None = None,
        skip_unchanged: bool = False,
    ) -> Future[Snapshot]:
        """Begin a snapshot of the map as it is now, and take it on a thread of its own.

        The future has what ``snapshot`` returns or raises; RunInProgressError is raised at once.
        """
        take = self._taking(repository, tags, skip_unchanged=skip_unchanged)
        future: Future[Snapshot] = Future()

        def run() -> None:
            try:
                future.set_result(take())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name=f"snapshot {self.store}").start()
        return future

    def _taking(
        self, repository: Snapstore, tags: Mapping[str, str] | None, *, skip_unchanged: bool
    ) -> Callable[[], Snapshot]:
        """Freeze the map now; return what does the rest, on whatever thread."""
        if not self._turn.acquire(blocking=False):
            raise RunInProgressError(f"a snapshot of {self.store} is being taken")
        try:
            frozen = self._pairs.freeze()
        except BaseException:
            self._turn.release()
            raise

        def take() -> Snapshot:
            try:
                self._save(frozen)
                return self._send(repository, tags, skip_unchanged=skip_unchanged)
            finally:
                self._turn.release()

        return take

    def _save(self, frozen: Frozen) -> None:
        saved = False
        try:
            self._chain = save(self._work.files, self._chain, frozen, self._reached)
            saved = True
        finally:
            self._pairs.thaw(saved=saved)
        remove_leftovers(self._work.files, self._chain)
        self._reached("leftovers removed")

    def _send(
        self, repository: Snapstore, tags: Mapping[str, str] | None, *, skip_unchanged: bool
    ) -> Snapshot:
        client = client_of(repository, self.store, self._work)
        report = client.snapshot(tags=tags, skip_unchanged=skip_unchanged)
        (outcome,) = report.outcomes
        if outcome.snapshot is not None:
            return outcome.snapshot
        if outcome.same_as is not None:
            return client.load(outcome.same_as)
        raise outcome.error or SnapstoreError(f"no snapshot of {self.store}: {outcome.status}")

    def _partition(self, changelog: ChangelogPartition | None) -> ChangelogPartition:
        chosen = changelog or self._changelog
        if chosen is None:
            raise ValueError("name the changelog partition, here or when the store is made")
        return chosen

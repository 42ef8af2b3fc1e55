"""Take one snapshot of one store: capture, blobs, manifest, entry."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing

import msgspec

from snapstore.errors import (
    BlobMissingError,
    IntegrityError,
    RefusedError,
    SnapstoreError,
    StoreChangedError,
    StoreNotFoundError,
)
from snapstore.model.changelog import PartitionState
from snapstore.model.identity import ChangelogPartition, StoreId
from snapstore.model.report import Advanced, Noted, StoreFinished, StoreStarted
from snapstore.model.rocksdb_format import with_writer
from snapstore.model.snapshot import (
    FORMAT,
    Description,
    FileEntry,
    Manifest,
    Position,
    Snapshot,
)
from snapstore.model.store import StoreLocation
from snapstore.operations.deadline import Deadline
from snapstore.operations.guarantee import guarantee_at_capture, status_of
from snapstore.operations.hold import (
    HeldOffsets,
    HeldStore,
    held_offsets,
    held_store,
    retrying,
)
from snapstore.operations.snapshot_fence import Fenced, Fencer, presumed_changelogs
from snapstore.operations.snapshot_preparation import Prepared, UnrestorableError
from snapstore.operations.snapshot_previous import Previous
from snapstore.operations.snapshot_report import Status, StoreOutcome, describe
from snapstore.operations.stopping import Stop
from snapstore.operations.topic_history import require_own_topic
from snapstore.operations.upload import Known, StoredFile, Uploader
from snapstore.ports import Clock, Layout, Listener, StoreBackend
from snapstore.repository import Repository


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What every snapshot of a run says of it.

    ``instance`` names the source, for instance its host; ``writer`` the program and its version.
    """

    run: str
    instance: str
    writer: str
    tags: dict[str, str] = {}


class StoreSnapshotter:
    """Takes the stores of one run, one call for each; safe for several threads.

    ``fencer`` is None where Kafka is not configured. A run that is past its ``deadline``
    publishes nothing.
    """

    def __init__(
        self,
        repository: Repository,
        uploader: Uploader,
        layout: Layout,
        facts: RunFacts,
        *,
        fencer: Fencer | None,
        skip_unchanged: bool,
        attempts: int,
        clock: Clock,
        listener: Listener,
        stop: Stop,
        deadline: Deadline,
    ) -> None:
        self._repository = repository
        self._uploader = uploader
        self._layout = layout
        self._facts = facts
        self._fencer = fencer
        self._skip_unchanged = skip_unchanged
        self._attempts = attempts
        self._clock = clock
        self._listener = listener
        self._stop = stop
        self._deadline = deadline

    def take(
        self,
        location: StoreLocation,
        backend: StoreBackend,
        prepare: Callable[[Stop], Prepared] | None = None,
    ) -> StoreOutcome:
        """Take a snapshot, trying again when the store changed; a failure is an outcome.

        ``prepare`` is called first, once, and heeds the order to stop; its failure is an outcome.
        """
        began = time.monotonic()
        made = missed = 0
        prepared = Prepared(location=location)

        def attempt(number: int) -> StoreOutcome:
            nonlocal made, missed
            made = number
            self._stop.check()
            try:
                return self._attempt(prepared, backend, first=number == 1)
            except StoreNotFoundError as error:
                missed += 1
                if number > 1 or self._attempts == 1:
                    raise
                # It was found a moment ago: its folder may be about to be filled, or swapped.
                raise StoreChangedError(error.message, hint=error.hint, **error.facts) from error

        try:
            if prepare is not None:
                prepared = prepare(self._stop)
            try:
                outcome = self._retrying(attempt)
            except UnrestorableError as unrestorable:
                assert prepared.otherwise is not None
                prepared = prepared.otherwise(unrestorable.reason, self._stop)
                outcome = self._retrying(attempt)
        except StoreNotFoundError as error:
            bare = missed == made and prepared.location.path.is_dir()
            if bare or error.facts.get("empty"):
                outcome = _outcome(location, "empty")
            else:
                outcome = _outcome(location, "failed", error=error)
        except SnapstoreError as error:
            outcome = _outcome(location, "failed", error=error)
        outcome = msgspec.structs.replace(
            outcome,
            attempts=made,
            seconds=time.monotonic() - began,
            remarks=(*prepared.remarks, *outcome.remarks),
        )
        self._listener(
            StoreFinished(
                store=location.store, outcome=describe(outcome), ok=outcome.status != "failed"
            )
        )
        return outcome

    def _retrying(self, attempt: Callable[[int], StoreOutcome]) -> StoreOutcome:
        return retrying(
            attempt,
            attempts=self._attempts,
            again=(StoreChangedError, BlobMissingError),
            sleep=self._stop.sleep,
        )

    def _attempt(self, prepared: Prepared, backend: StoreBackend, *, first: bool) -> StoreOutcome:
        location = prepared.location
        previous = self._previous(location.store)
        before = prepared.before or self._look_at_changelogs(location, previous)
        with held_store(location, self._layout, backend, self._clock) as held:
            offsets = held_offsets(location, self._layout, held)
            fenced = self._fenced(location, held, offsets, before)
            require_own_topic(self._repository.catalog, location, fenced.positions)
            description = self._describe(location, held, fenced.positions)
            if fenced.refusal and not fenced.final and prepared.otherwise is not None:
                raise UnrestorableError(fenced.refusal)
            description = msgspec.structs.replace(
                description,
                source=prepared.source or description.source,
                complete=prepared.complete,
            )
            files = self._send(location, held, previous, trust_cache=first)
        entries = tuple(sorted((file.entry for file in files), key=lambda entry: entry.name))
        description = with_writer(description, entries)
        same = previous is not None and previous.same(description, entries)
        outcome = _counted(_outcome(location, "unchanged", same_content=same), files)
        outcome = msgspec.structs.replace(
            outcome,
            remarks=offsets.remarks,
            source=prepared.source or ("running" if held.running else "closed"),
            unrestorable=fenced.refusal,
        )
        if (
            previous is not None
            and same
            and self._skip_unchanged
            and previous.says(entries, self._facts.tags)
            and Fencer.lasts(previous.manifest.description.positions, description.positions)
        ):
            return msgspec.structs.replace(outcome, same_as=previous.listed)
        manifest = Manifest(
            format=FORMAT, description=description, files=entries, deletions=fenced.deletions
        )
        snapshot = self._publish(manifest, outcome, previous)
        return msgspec.structs.replace(outcome, status="stored", snapshot=snapshot)

    def _previous(self, store: StoreId) -> Previous | None:
        """Return the newest snapshot; one that cannot be read is told of and passed over."""
        listed = self._repository.catalog.newest_of(store)
        if listed is None:
            return None
        try:
            manifest = self._repository.manifests.load(listed.id)
        except (IntegrityError, RefusedError) as error:
            self._listener(Noted(message=f"{error.message}: nothing of it is reused"))
            return None
        return Previous(listed=listed, manifest=manifest)

    def _look_at_changelogs(
        self, location: StoreLocation, previous: Previous | None
    ) -> Mapping[ChangelogPartition, PartitionState]:
        """Describe the changelogs that the store seems to have, before its files are held."""
        if self._fencer is None:
            return {}
        changelogs = set(presumed_changelogs(self._layout, location.store))
        if previous is not None:
            positions = previous.manifest.description.positions
            changelogs = {each.position.changelog for each in positions} or changelogs
        return self._fencer.before(sorted(changelogs))

    def _fenced(
        self,
        location: StoreLocation,
        held: HeldStore,
        offsets: HeldOffsets,
        before: Mapping[ChangelogPartition, PartitionState],
    ) -> Fenced:
        if self._fencer is None:
            return Fenced(positions=tuple(Position(position=each) for each in offsets.positions))
        return self._fencer.take(location, held.capture.view, offsets.positions, before)

    def _describe(
        self, location: StoreLocation, held: HeldStore, positions: tuple[Position, ...]
    ) -> Description:
        status = status_of(self._layout, held.capture.view)
        killed = not held.running and status == "open"
        guarantee = guarantee_at_capture(
            location.store, status, self._layout, positions, fenced=self._fencer is not None
        )
        return Description(
            store=location.store,
            layout=location.layout,
            backend=location.backend,
            store_type=location.store_type,
            generation=location.generation,
            root=location.root,
            databases=held.capture.view.databases,
            positions=positions,
            captured_at=held.began_at,
            source="running" if held.running or killed else "closed",
            instance=self._facts.instance,
            run=self._facts.run,
            writer=self._facts.writer,
            tags=self._facts.tags,
            status=status,
            killed=killed,
            guarantee=None if guarantee is None else guarantee.guarantee,
            guarantee_found_by=None if guarantee is None else guarantee.found_by,
        )

    def _send(
        self,
        location: StoreLocation,
        held: HeldStore,
        previous: Previous | None,
        *,
        trust_cache: bool,
    ) -> list[StoredFile]:
        store, captured = location.store, held.capture.files
        total = sum(file.size for file in captured)
        self._listener(StoreStarted(store=store, stage="upload", total=total))

        def advanced(amount: int, moved: bool) -> None:
            if amount:
                self._listener(Advanced(store=store, stage="upload", amount=amount, moved=moved))

        files = []
        known = previous.known if previous is not None else Known()
        with closing(
            self._uploader.send(
                captured, known, trust_cache=trust_cache, advanced=advanced, stop=self._stop
            )
        ) as sending:
            for file, stored in sending:
                held.capture.release(file)
                files.append(stored)
        return files

    def _publish(
        self,
        manifest: Manifest,
        outcome: StoreOutcome,
        previous: Previous | None,
    ) -> Snapshot:
        entries = manifest.files
        snapshot = Snapshot(
            format=FORMAT,
            id=self._repository.manifests.put(manifest),
            description=manifest.description,
            files=len(entries),
            size_bytes=sum(entry.size for entry in entries),
            new_files=outcome.new_files,
            new_bytes=outcome.new_bytes,
        )
        self._require_blobs(entries, previous)
        if self._deadline.passed():
            raise self._too_late()
        self._stop.check()
        listed = self._repository.catalog.publish(snapshot)
        if self._deadline.passed_by_far():
            # The process, or the entry on its way, was held up for so long that it came too late.
            self._repository.catalog.remove([listed])
            raise self._too_late()
        return snapshot

    def _too_late(self) -> RefusedError:
        return RefusedError(
            "the run took longer than the repository allows, so a sweep may have begun to "
            "delete what it relied on",
            hint="run again: what was sent is not sent again",
            longest_run_s=self._repository.marker.longest_run_s,
        )

    def _require_blobs(self, entries: tuple[FileEntry, ...], previous: Previous | None) -> None:
        """Ask once more for every blob, but those that a listed snapshot keeps alive."""
        names = {entry.blob for entry in entries if entry.blob is not None}
        if previous is not None and self._repository.catalog.is_listed(previous.listed):
            names -= set(previous.blobs.values())
        missing = self._uploader.missing(sorted(names))
        if missing:
            raise BlobMissingError(
                f"{len(missing)} of the blobs of {entries[0].name} and others were deleted "
                "while the snapshot was taken",
                hint="run again",
                blob=missing[0],
            )


def _outcome(
    location: StoreLocation,
    status: Status,
    *,
    same_content: bool = False,
    error: SnapstoreError | None = None,
) -> StoreOutcome:
    return StoreOutcome(
        store=location.store,
        status=status,
        seconds=0.0,
        attempts=0,
        same_content=same_content,
        error=error,
    )


def _counted(outcome: StoreOutcome, files: list[StoredFile]) -> StoreOutcome:
    """Add what was sent and what was there; files inside the manifest count as neither."""
    new = [file.entry.size for file in files if file.new]
    reused = [file.entry.size for file in files if not file.new and file.entry.inline is None]
    return msgspec.structs.replace(
        outcome,
        new_files=len(new),
        new_bytes=sum(new),
        reused_files=len(reused),
        reused_bytes=sum(reused),
    )
